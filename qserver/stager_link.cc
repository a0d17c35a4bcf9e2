// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <fmt/format.h>

namespace sekisho::qserver {
namespace {

constexpr uint32_t kReplyMost = 4 << 20;

awaitable<void> Reap(int pid_fd, pid_t pid) {
  asio::posix::stream_descriptor process(co_await asio::this_coro::executor, pid_fd);
  co_await process.async_wait(asio::posix::stream_descriptor::wait_read, kAsTuple);
  siginfo_t info{};
  waitid(P_PID, id_t(pid), &info, WEXITED);
}

absl::Status Died() { return absl::UnavailableError("its stager has ended"); }

absl::Status StatusOf(const StagerReply::Failed& failed) {
  if (failed.is_refused()) {
    return absl::InvalidArgumentError(failed.what());
  }
  return failed.is_other() ? absl::DataLossError(failed.what()) : absl::FailedPreconditionError(failed.what());
}

}  // namespace

awaitable<absl::StatusOr<std::unique_ptr<StagerLink>>> StagerLink::Start(Loop& loop, std::string program,
                                                                         std::optional<RunAs> as,
                                                                         StagerOrder::Begin begin) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    co_return absl::UnavailableError(fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
  }
  const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const absl::StatusOr<pid_t> pid = Spawn({program}, {}, {ends[1], nothing, nothing}, as);
  close(nothing);
  close(ends[1]);
  if (!pid.ok()) {
    close(ends[0]);
    co_return pid.status();
  }
  std::unique_ptr<StagerLink> link(new StagerLink(loop, ends[0], *pid));
  StagerOrder order;
  *order.mutable_begin() = std::move(begin);
  CO_RETURN_IF_ERROR(co_await link->Tell(std::move(order)));
  co_return link;
}

StagerLink::StagerLink(Loop& loop, int fd, pid_t pid) : loop_(loop), socket_(loop), pid_(pid) {
  socket_.assign(asio::local::stream_protocol(), fd);
}

// Whoever asked has gone, and what he asked for may take long: no more stagers are to be at work than may.
StagerLink::~StagerLink() {
  if (is_asked_) {
    kill(pid_, SIGKILL);
  }
  const int pid_fd = int(syscall(SYS_pidfd_open, pid_, 0));
  if (pid_fd >= 0) {
    co_spawn(loop_, Reap(pid_fd, pid_), Logged("the end of a stager"));
  }
}

awaitable<absl::Status> StagerLink::Tell(StagerOrder order) {
  const std::string body = order.SerializeAsString();
  const uint32_t size = htonl(uint32_t(body.size()));
  const std::array<asio::const_buffer, 2> parts = {asio::buffer(&size, sizeof size), asio::buffer(body)};
  const auto [error, written] = co_await asio::async_write(socket_, parts, kAsTuple);
  co_return error ? Died() : absl::OkStatus();
}

awaitable<absl::StatusOr<StagerReply>> StagerLink::Ask(StagerOrder order) {
  is_asked_ = true;
  CO_RETURN_IF_ERROR(co_await Tell(std::move(order)));
  uint32_t size = 0;
  const auto [broken, head] = co_await asio::async_read(socket_, asio::buffer(&size, sizeof size), kAsTuple);
  size = ntohl(size);
  if (broken || size > kReplyMost) {
    co_return Died();
  }
  std::string body(size, '\0');
  const auto [cut, got] = co_await asio::async_read(socket_, asio::buffer(body), kAsTuple);
  is_asked_ = bool(cut);
  StagerReply reply;
  if (cut || !reply.ParseFromString(body)) {
    co_return Died();
  }
  if (reply.has_failed()) {
    co_return StatusOf(reply.failed());
  }
  co_return reply;
}

}  // namespace sekisho::qserver
