// SPDX-License-Identifier: Apache-2.0
// The agent's two doors: to the queue server, and for sekisho-rsh.
#pragma once

#include <memory>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/server.h>

#include "agent/launcher_service.h"
#include "common/acceptor.h"
#include "common/tls/client_tls.h"

namespace sekisho::agent {

std::shared_ptr<grpc::Channel> DialQueueServer(const std::string& address, const tls::ClientTls& tls);

// `socket`: a path.
absl::StatusOr<std::unique_ptr<grpc::Server>> ServeLauncher(Acceptor& door, const std::string& socket,
                                                            LauncherService& service);

}  // namespace sekisho::agent
