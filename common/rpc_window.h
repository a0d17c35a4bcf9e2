// SPDX-License-Identifier: Apache-2.0
// The flow-control window of our gRPC connections: fixed.
//
// gRPC would find it by itself, with a ping for each burst that arrives: two packets and two threads woken for
// every message of a job.  1 MiB lets one stream carry 10 MB/s over 100 ms.
#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

namespace sekisho::rpc {

inline constexpr int kWindowBytes = 1 << 20;

inline void SetWindow(grpc::ChannelArguments& arguments) {
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
}

inline void SetWindow(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
}

}  // namespace sekisho::rpc
