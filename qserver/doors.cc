// SPDX-License-Identifier: Apache-2.0
#include "qserver/doors.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include "common/rpc_window.h"

namespace sekisho::qserver {

std::unique_ptr<grpc::Server> Serve(Acceptor& acceptor, const Door& door, const identity::Credential& host,
                                    tls::JudgeCall judge, const std::vector<grpc::Service*>& services) {
  grpc::ServerBuilder builder;
  auto external = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      tls::GatedCredentials(host, std::move(judge)));
  for (grpc::Service* service : services) {
    builder.RegisterService(service);
  }
  builder.SetMaxReceiveMessageSize(door.message_bytes);
  builder.SetResourceQuota(grpc::ResourceQuota("door").Resize(door.memory_bytes));
  rpc::SetWindow(builder);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, door.streams);
  // Half-open connections are found in ten seconds: a world is told soon that a node of it has gone.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  auto server = builder.BuildAndStart();
  acceptor.Run(std::move(external));
  return server;
}

}  // namespace sekisho::qserver
