// SPDX-License-Identifier: Apache-2.0
// The port at which a daemon's figures are read.
#include <filesystem>
#include <memory>
#include <utility>

#include <asio/generic/stream_protocol.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read_until.hpp>
#include <asio/write.hpp>
#include <fmt/format.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/metrics.h"

namespace sekisho {
namespace {

constexpr size_t kHeadMost = 8 << 10;
constexpr int kReadersMost = 16;
constexpr std::chrono::seconds kLife{5};

using Socket = asio::generic::stream_protocol::socket;

struct Door {
  Loop& loop;
  std::string daemon;
  std::function<void(Metrics&)> fill;
  int readers = 0;
};

std::string TextOf(const Door& door) {
  Metrics metrics(door.daemon);
  door.fill(metrics);
  metrics.AddProcess();
  return metrics.text();
}

awaitable<void> Answer(std::shared_ptr<Door> door, std::shared_ptr<Socket> socket) {
  asio::steady_timer limit(door->loop, kLife);
  limit.async_wait([socket](const std::error_code& error) {
    if (!error) {
      std::error_code ignored;
      socket->close(ignored);
    }
  });
  std::string head;
  const auto [read_error, size] =
      co_await asio::async_read_until(*socket, asio::dynamic_buffer(head, kHeadMost), "\r\n\r\n", kAsTuple);
  if (!read_error) {
    const std::string answer = AnswerHttp(head, [&] { return TextOf(*door); });
    co_await asio::async_write(*socket, asio::buffer(answer), kAsTuple);
    std::error_code ignored;
    socket->shutdown(Socket::shutdown_send, ignored);
  }
}

template <typename Acceptor>
awaitable<void> Accept(std::shared_ptr<Door> door, std::shared_ptr<Acceptor> acceptor) {
  for (;;) {
    auto [error, socket] = co_await acceptor->async_accept(kAsTuple);
    if (error) {
      co_await Sleep(door->loop, std::chrono::seconds(1));  // no descriptor is free
    } else if (door->readers < kReadersMost) {
      ++door->readers;
      co_spawn(door->loop, Answer(door, std::make_shared<Socket>(std::move(socket))),
               [door](const std::exception_ptr& thrown) {
                 --door->readers;
                 Logged("an answer with our figures")(thrown);
               });
    }
  }
}

std::error_code ListenTcp(const std::shared_ptr<Door>& door, const std::string& address) {
  const size_t colon = address.rfind(':');
  const auto number = colon == std::string::npos ? 0 : std::atoi(address.c_str() + colon + 1);
  std::string host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  std::error_code error;
  const auto ip = asio::ip::make_address(host, error);
  if (error || colon == std::string::npos || number < 0 || number > 65535) {
    return std::make_error_code(std::errc::invalid_argument);
  }
  const asio::ip::tcp::endpoint endpoint(ip, static_cast<uint16_t>(number));
  auto acceptor = std::make_shared<asio::ip::tcp::acceptor>(door->loop);
  acceptor->open(endpoint.protocol(), error);
  acceptor->set_option(asio::socket_base::reuse_address(true), error);
  acceptor->bind(endpoint, error);
  if (!error) {
    acceptor->listen(kReadersMost, error);
  }
  if (!error) {
    co_spawn(door->loop, Accept(door, acceptor), Vital("its metrics"));
  }
  return error;
}

std::error_code ListenUnix(const std::shared_ptr<Door>& door, const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);  // a predecessor's
  auto acceptor = std::make_shared<asio::local::stream_protocol::acceptor>(door->loop);
  if (path.size() >= 100) {
    return std::make_error_code(std::errc::filename_too_long);
  }
  acceptor->open(asio::local::stream_protocol(), error);
  const mode_t before = umask(0177);  // the account's alone
  acceptor->bind(path, error);
  umask(before);
  if (!error) {
    acceptor->listen(kReadersMost, error);
  }
  if (!error) {
    co_spawn(door->loop, Accept(door, acceptor), Vital("its metrics"));
  }
  return error;
}

}  // namespace

void ServeMetrics(Loop& loop, const std::string& daemon, const std::string& address,
                  std::function<void(Metrics&)> fill) {
  if (address == "none") {
    return;
  }
  const auto door = std::make_shared<Door>(Door{loop, daemon, std::move(fill)});
  const std::error_code error = address.starts_with("unix:") ? ListenUnix(door, address.substr(5))
                                                             : ListenTcp(door, address);
  if (error) {
    spdlog::warn("no metrics at {}: {}", address, error.message());
  }
}

}  // namespace sekisho
