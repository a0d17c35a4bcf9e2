// SPDX-License-Identifier: Apache-2.0
// The flow-control windows of our gRPC connections.
//
// A call may be this far ahead of its reader from its start on.  gRPC widens it, and only so that of the whole
// connection, by what it sees of the way (BDP probes, at most ten pings a second): without them a connection of
// gRPC 1.51 carries 64 KiB at a time, which over 100 ms is 0.6 MB/s, whatever a call's window is.
#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

namespace sekisho::rpc {

inline constexpr int kWindowBytes = 1 << 20;

inline void SetWindow(grpc::ChannelArguments& arguments) {
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
}

inline void SetWindow(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
}

}  // namespace sekisho::rpc
