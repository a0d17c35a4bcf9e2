// SPDX-License-Identifier: Apache-2.0
// A Unix socket at which any account may knock, and who knocks.
#pragma once

#include <functional>
#include <string>

#include <asio/local/stream_protocol.hpp>

#include "common/loop.h"
#include "common/status.h"

namespace sekisho::agent {

using LocalAcceptor = asio::local::stream_protocol::acceptor;
using LocalSocket = asio::local::stream_protocol::socket;

// In place of one that an earlier agent has left.  Who may come in is for its owner to decide.
absl::Status ListenAt(LocalAcceptor& acceptor, const std::string& path);

// Until the acceptor is closed, which outlives this.
awaitable<void> AcceptAll(Loop& loop, LocalAcceptor& acceptor,
                          std::function<void(LocalSocket)> serve);

}  // namespace sekisho::agent
