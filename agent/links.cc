// SPDX-License-Identifier: Apache-2.0
#include "agent/links.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <grpcpp/grpcpp.h>

#include "agent/errors.h"
#include "agent/rsh/limits.h"
#include "common/rpc_window.h"

namespace sekisho::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kServerMessageMost = 16 << 20;  // as the queue server's

}  // namespace

std::shared_ptr<grpc::Channel> DialQueueServer(const std::string& address, const tls::ClientTls& tls) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 6000);  // it allows a ping in 5 s
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 4000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(kServerMessageMost);
  rpc::SetWindow(arguments);
  return grpc::CreateCustomChannel(address, tls.credentials, arguments);
}

absl::StatusOr<std::unique_ptr<grpc::Server>> ServeLauncher(Acceptor& door, const std::string& socket,
                                                            LauncherService& service) {
  std::error_code error;
  fs::create_directories(fs::path(socket).parent_path(), error);
  RETURN_IF_ERROR(door.Listen("unix:" + socket));
  if (chmod(socket.c_str(), 0666) != 0) {  // the token decides, not the account
    return errors::BadDirectory(socket, std::strerror(errno));
  }
  grpc::ServerBuilder builder;
  auto external = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(rsh::kMessageMost);
  auto server = builder.BuildAndStart();
  door.Run(std::move(external));
  return server;
}

}  // namespace sekisho::agent
