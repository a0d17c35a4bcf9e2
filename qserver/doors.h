// SPDX-License-Identifier: Apache-2.0
// The queue server's two ports, and how much one who calls there may take.
#pragma once

#include <memory>
#include <vector>

#include <grpcpp/server.h>

#include "common/acceptor.h"
#include "common/tls/gate.h"

namespace sekisho::qserver {

struct Door {
  int message_bytes = 4 << 20;
  int streams = 4096;             // of one connection at a time; more wait at their sender
  size_t memory_bytes = 256 << 20;  // for what has come and is not taken, of all connections
};

// For jobmanagers, each of which carries an account's calls.
inline constexpr Door kQueueDoor;
// For agents: one stream each, with requests of helpers that carry a task's environment.
inline constexpr Door kNodesDoor{.message_bytes = 16 << 20, .streams = 8, .memory_bytes = 512 << 20};

// Serves whom `acceptor` lets in and `judge` knows.
std::unique_ptr<grpc::Server> Serve(Acceptor& acceptor, const Door& door, const identity::Credential& host,
                                    tls::JudgeCall judge, const std::vector<grpc::Service*>& services);

}  // namespace sekisho::qserver
