// SPDX-License-Identifier: Apache-2.0
// A context goes from one process to another, as one descriptor: a socket in which the descriptors
// that it consists of wait.  docs/protocol/9-pm.md, "Two drivers".
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <new>

#include "transport/pm/context.h"

namespace sekisho::pm {
namespace {

constexpr int kAskTimeoutMs = 5000;

struct MovedMessage {
  static constexpr std::uint64_t kMagic = 0x31766f6d6b6573;

  std::uint64_t magic = kMagic;
  std::array<char, 108> daemon{};
};

// Stays in the socket until the context has arrived.
Received Look(int socket, MovedMessage& message) {
  Received received = ReceiveMessage(socket, RoomFor(message), MSG_DONTWAIT | MSG_PEEK);
  if (received.size == sizeof message && message.magic == MovedMessage::kMagic &&
      message.daemon.back() == 0) {
    return received;
  }
  for (std::size_t i = 0; i < received.fd_count; ++i) close(received.fds[i]);
  return {};
}

}  // namespace

std::error_code Context::Detach(int& out) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return {errno, std::generic_category()};
  }
  MovedMessage message;
  message.daemon = daemon_;
  std::array<int, kFdsMax> fds;
  std::size_t count = 0;
  for (const int fd : {memory_.fd(), wire_.fd(), keeper_bell_, program_bell_, connection_}) {
    if (fd >= 0) fds[count++] = fd;
  }
  const int error = SendMessage(ends[0], BytesOf(message), std::span(fds).first(count));
  close(ends[0]);
  if (error == 0 && fcntl(ends[1], F_SETFD, 0) == 0) {  // exec keeps it
    out = ends[1];
    return {};
  }
  close(ends[1]);
  return {error != 0 ? error : EIO, std::generic_category()};
}

std::error_code Context::Attach(int fd, std::unique_ptr<Context>& out) {
  std::unique_ptr<Context> context(new (std::nothrow) Context);
  if (!context) return Error::kNoMemory;
  MovedMessage message;
  const Received received = Look(fd, message);
  const auto& fds = received.fds;
  const std::size_t count = received.fd_count;
  const bool has_daemon = message.daemon[0] != 0;
  const bool fits = has_daemon ? count >= ContextFds::kCount : count == 2;
  if (!fits) {
    for (std::size_t i = 0; i < count; ++i) close(fds[i]);
    return Error::kBadConfig;
  }
  if (has_daemon) {
    context->daemon_ = message.daemon;
    context->keeper_bell_ = fds[2];
    context->program_bell_ = fds[3];
    if (count > ContextFds::kCount) context->connection_ = fds[4];
  }
  const auto mapped = context->memory_.Map(fds[0]);
  const auto adopted = context->wire_.Adopt(fds[1]);
  if (mapped || adopted) return mapped ? mapped : adopted;
  if (has_daemon) {
    if (const auto error = context->Announce()) return error;
  }
  context->Restore();  // what the other process had taken and not received is not open here
  if (const auto error = context->Begin()) return error;
  close(fd);
  out = std::move(context);
  return {};
}

// To the daemon, which watches the other process until then.
std::error_code Context::Announce() {
  const int connection = ConnectDaemon(daemon_.data());
  if (connection < 0) return {errno, std::generic_category()};
  AskMessage ask;
  ask.ask = Ask::kMove;
  ask.config.context = config().context;
  ask.config.node = config().node;
  AnswerMessage answer;
  Received received;
  const std::array<int, 1> fds = {memory_.fd()};
  const int error = AskDaemon(connection, ask, fds, kAskTimeoutMs, answer, received);
  for (std::size_t i = 0; i < received.fd_count; ++i) close(received.fds[i]);  // we have them
  if (error != 0) {
    close(connection);
    return {error, std::generic_category()};
  }
  if (connection_ >= 0) close(connection_);
  connection_ = connection;
  return {};
}

}  // namespace sekisho::pm
