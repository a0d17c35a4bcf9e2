// SPDX-License-Identifier: Apache-2.0
#include "agent/local_door.h"

#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <filesystem>

#include "agent/errors.h"

namespace sekisho::agent {

using asio::local::stream_protocol;

absl::Status ListenAt(LocalAcceptor& acceptor, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  unlink(path.c_str());
  acceptor.open(stream_protocol(), error);
  if (!error) {
    acceptor.bind(stream_protocol::endpoint(path), error);
  }
  if (!error) {
    acceptor.listen(asio::socket_base::max_listen_connections, error);
  }
  if (!error && chmod(path.c_str(), 0666) != 0) {
    error = std::error_code(errno, std::generic_category());
  }
  return error ? errors::BadDirectory(path, error.message()) : absl::OkStatus();
}

awaitable<void> AcceptAll(Loop& loop, LocalAcceptor& acceptor,
                          std::function<void(LocalSocket)> serve) {
  for (;;) {
    LocalSocket socket(loop);
    const auto [error] = co_await acceptor.async_accept(socket, kAsTuple);
    if (error == asio::error::operation_aborted) {
      co_return;
    }
    if (error) {  // out of descriptors: some will be free again
      co_await Sleep(loop, std::chrono::milliseconds(100));
      if (!acceptor.is_open()) {  // closed meanwhile
        co_return;
      }
      continue;
    }
    serve(std::move(socket));
  }
}

}  // namespace sekisho::agent
