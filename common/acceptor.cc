// SPDX-License-Identifier: Apache-2.0
#include "common/acceptor.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <asio/ip/tcp.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"

namespace sekisho {
namespace {

using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 4096;
constexpr int kAcceptsAtOnce = 64;  // then the loop serves others
constexpr int kEventsAtOnce = 128;
constexpr unsigned kSilenceMs = 20'000;
constexpr std::chrono::milliseconds kRetry{100};  // after running out of descriptors
constexpr char kTlsHandshake = 0x16;

asio::ip::address Unmapped(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return address;
}

std::string Text(const tcp::endpoint& endpoint) {
  const auto address = Unmapped(endpoint.address());
  return fmt::format(fmt::runtime(address.is_v4() ? "{}:{}" : "[{}]:{}"), address.to_string(),
                     endpoint.port());
}

absl::Status CannotListen(const std::string& address) {
  return absl::FailedPreconditionError(fmt::format("listen {}: {}", address, std::strerror(errno)));
}

}  // namespace

std::string PeerOf(const asio::ip::address& address) {
  const auto plain = Unmapped(address);
  if (plain.is_v4()) {
    return plain.to_string();
  }
  auto bytes = plain.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

std::string EndpointText(const std::string& grpc_peer) {
  std::string text = grpc_peer.substr(grpc_peer.find(':') + 1);
  for (const auto& [encoded, plain] : {std::pair("%5B", "["), {"%5D", "]"}}) {
    if (const auto at = text.find(encoded); at != std::string::npos) {
      text.replace(at, 3, plain);
    }
  }
  return text;
}

Acceptor::Acceptor(Loop& loop, Admission::Limits limits, bool expect_tls)
    : loop_(loop),
      expect_tls_(expect_tls),
      admission_(limits),
      listener_(loop),
      events_(loop, epoll_create1(EPOLL_CLOEXEC)),
      deadline_(loop),
      retry_(loop) {}

Acceptor::~Acceptor() {
  for (const auto& [id, connection] : connections_) {
    close(connection.fd);
  }
}

absl::Status Acceptor::Listen(const std::string& address) {
  const bool is_unix = address.rfind("unix:", 0) == 0;
  RETURN_IF_ERROR(is_unix ? ListenUnix(address.substr(5)) : ListenTcp(address));
  if (listen(listener_.native_handle(), kBacklog) != 0) {
    return CannotListen(address);
  }
  is_unix_ = is_unix;
  return absl::OkStatus();
}

absl::Status Acceptor::ListenTcp(const std::string& address) {
  const auto colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  std::error_code error;
  const auto parsed = asio::ip::make_address(host, error);
  uint16_t port = 0;
  const char* end = address.data() + address.size();
  if (error || colon == std::string::npos ||
      std::from_chars(address.data() + colon + 1, end, port).ptr != end) {
    return absl::InvalidArgumentError(
        fmt::format("listen: expected ADDRESS:PORT, such as 0.0.0.0:2119 or [::]:2119, saw '{}'", address));
  }
  const tcp::endpoint endpoint(parsed, port);
  const int fd = socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return CannotListen(address);
  }
  listener_.assign(fd);
  const int on = 1;
  const int off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kSilenceMs, sizeof kSilenceMs);  // connections inherit it
  if (parsed.is_v6()) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  return bind(fd, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 ? absl::OkStatus()
                                                                                 : CannotListen(address);
}

absl::Status Acceptor::ListenUnix(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof name.sun_path) {
    return absl::InvalidArgumentError(
        fmt::format("listen: a path of 1 to {} bytes, saw '{}'", sizeof name.sun_path - 1, path));
  }
  path.copy(name.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return CannotListen(path);
  }
  listener_.assign(fd);
  unlink(path.c_str());  // of an earlier life
  return bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 ? absl::OkStatus()
                                                                             : CannotListen(path);
}

uint16_t Acceptor::port() const {
  tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  getsockname(const_cast<asio::posix::stream_descriptor&>(listener_).native_handle(), endpoint.data(), &size);
  return is_unix_ ? 0 : endpoint.port();
}

void Acceptor::Run(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server) {
  server_ = std::move(server);
  WaitForArrival();
  WaitForEvents();
}

void Acceptor::Stop() {
  std::error_code ignored;
  listener_.close(ignored);
  retry_.cancel();
  server_.reset();
}

void Acceptor::WaitForArrival() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const std::error_code& error) {
    if (error || server_ == nullptr) {
      return;
    }
    for (int i = 0; i < kAcceptsAtOnce && Accept(); ++i) {
    }
    ArmDeadline();
    if (!is_out_of_descriptors_) {
      return WaitForArrival();
    }
    retry_.expires_after(kRetry);
    retry_.async_wait([this](const std::error_code& stopped) {
      if (!stopped) {
        WaitForArrival();
      }
    });
  });
}

// False: there is nothing to accept now.
bool Acceptor::Accept() {
  const int fd = accept4(listener_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE) {
      // Room for the next: whoever has not come further yet goes.
      if (const auto oldest = admission_.EvictOldest()) {
        Drop(*oldest);
        return true;
      }
      if (!is_out_of_descriptors_) {  // one line per outage
        spdlog::error("out of descriptors: raise LimitNOFILE or lower the limits open={}", admission_.open());
      }
      is_out_of_descriptors_ = true;
      return false;
    }
    return errno == ECONNABORTED || errno == EINTR;
  }
  is_out_of_descriptors_ = false;
  const Arrival name = NameOf(fd);
  const auto arrival = admission_.Arrive(name.peer, Clock::now());
  if (arrival.evicted) {
    Drop(*arrival.evicted);
  }
  const int on = 1;
  if (!is_unix_) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  const Admission::Id id = arrival.admitted;
  connections_[id] = {fd, name.endpoint, false};
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data = {.u64 = id}};
  CHECK(epoll_ctl(events_.native_handle(), EPOLL_CTL_ADD, fd, &event) == 0);
  return true;
}

Acceptor::Arrival Acceptor::NameOf(int fd) const {
  if (is_unix_) {
    ucred peer{};
    socklen_t size = sizeof peer;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    return {fmt::format("uid {}", peer.uid), ""};
  }
  tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  if (getpeername(fd, endpoint.data(), &size) != 0) {
    return {"gone", ""};  // it will be seen to have closed
  }
  endpoint.resize(size);
  return {PeerOf(endpoint.address()), Text(endpoint)};
}

void Acceptor::WaitForEvents() {
  events_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const std::error_code& error) {
    if (error) {
      return;
    }
    std::array<epoll_event, kEventsAtOnce> events;
    const int count = epoll_wait(events_.native_handle(), events.data(), kEventsAtOnce, 0);
    for (int i = 0; i < count; ++i) {
      OnEvent(events[static_cast<size_t>(i)].data.u64, events[static_cast<size_t>(i)].events);
    }
    WaitForEvents();
  });
}

void Acceptor::OnEvent(Admission::Id id, uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) {
    return;
  }
  if (found->second.is_handed_over) {
    // gRPC or the peer has closed it.
    admission_.Leave(id);
    Close(id);
    return;
  }
  char first = 0;
  const bool has_data = (events & EPOLLIN) != 0 && recv(found->second.fd, &first, 1, MSG_PEEK) == 1;
  if (!has_data || (expect_tls_ && first != kTlsHandshake) || server_ == nullptr) {
    admission_.Leave(id);
    Drop(id);
    return;
  }
  HandOver(id);
}

void Acceptor::HandOver(Admission::Id id) {
  Connection& connection = connections_[id];
  if (is_unix_ && !admission_.Finish(id)) {
    admission_.Leave(id);
    return Drop(id);
  }
  const int copy = fcntl(connection.fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) {
    spdlog::error("out of descriptors open={}", admission_.open());
    admission_.Leave(id);
    Drop(id);
    return;
  }
  connection.is_handed_over = true;
  if (!is_unix_) {
    by_endpoint_[connection.endpoint] = id;
  }
  epoll_event event{.events = EPOLLRDHUP | EPOLLET, .data = {.u64 = id}};
  CHECK(epoll_ctl(events_.native_handle(), EPOLL_CTL_MOD, connection.fd, &event) == 0);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = -1;
  parameters.fd = copy;  // gRPC's from here on
  server_->HandleNewConnection(&parameters);
}

bool Acceptor::Finish(const std::string& grpc_peer) {
  const auto found = by_endpoint_.find(EndpointText(grpc_peer));
  return found == by_endpoint_.end() || admission_.Finish(found->second);
}

void Acceptor::HangUp(const std::string& grpc_peer) {
  const auto found = by_endpoint_.find(EndpointText(grpc_peer));
  if (found != by_endpoint_.end() && admission_.IsUnfinished(found->second)) {
    const Admission::Id id = found->second;
    admission_.Leave(id);
    Drop(id);
  }
}

void Acceptor::Drop(Admission::Id id) {
  if (const auto found = connections_.find(id); found != connections_.end()) {
    shutdown(found->second.fd, SHUT_RDWR);
    Close(id);
  }
}

void Acceptor::Close(Admission::Id id) {
  const auto found = connections_.find(id);
  // gRPC's duplicate keeps the socket open, and with it our entry in the set.
  epoll_ctl(events_.native_handle(), EPOLL_CTL_DEL, found->second.fd, nullptr);
  close(found->second.fd);
  if (const auto named = by_endpoint_.find(found->second.endpoint);
      named != by_endpoint_.end() && named->second == id) {
    by_endpoint_.erase(named);
  }
  connections_.erase(found);
}

void Acceptor::ArmDeadline() {
  const auto next = admission_.NextDeadline();
  if (is_deadline_armed_ || !next) {
    return;
  }
  is_deadline_armed_ = true;
  deadline_.expires_at(*next);
  deadline_.async_wait([this](const std::error_code& error) {
    if (error) {
      return;  // we may have gone
    }
    is_deadline_armed_ = false;
    for (const Admission::Id id : admission_.Expire(Clock::now())) {
      Drop(id);
    }
    ArmDeadline();
  });
}

}  // namespace sekisho
