// SPDX-License-Identifier: Apache-2.0
#include "agent/task/pmi_pump.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

namespace sekisho::agent::task {
namespace {

constexpr int64_t kRedialMs = 250;
constexpr size_t kUnreadMost = 64 << 10;  // by the rank
constexpr int kTurnsMost = 8;             // of kTurn: more than may have no answer, and others wait for us too
constexpr size_t kTurn = 16 << 10;

void Close(int& fd) {
  if (fd >= 0) {
    close(fd);
    fd = -1;
  }
}

// What is there goes to `take`, until that wants no more.  False at the stream's end.
template <typename Take>
bool Receive(int fd, Take take) {
  char buffer[kTurn];
  for (int turn = 0; turn < kTurnsMost; ++turn) {
    const ssize_t n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n <= 0) {
      return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    if (!take(std::string_view(buffer, static_cast<size_t>(n)))) {
      return true;
    }
  }
  return true;
}

// How much of `bytes` went; -1 if none ever will.
ssize_t Send(int fd, const std::string& bytes) {
  const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return n >= 0 || (errno != EAGAIN && errno != EINTR) ? n : 0;
}

// Not looked at if it waits for nothing: its end would be told again and again.
pollfd Ready(int fd, bool reads, bool writes) {
  const int events = (reads ? POLLIN : 0) | (writes ? POLLOUT : 0);
  return {events == 0 ? -1 : fd, static_cast<short>(events), 0};
}

}  // namespace

PmiPump::PmiPump(const Spec& spec)
    : path_(spec.pmi_socket),
      lines_("sekisho " + spec.job_id + " " + std::to_string(spec.task) + " " + spec.launch_token) {}

PmiPump::~PmiPump() {
  Close(rank_);
  Close(agent_);
}

int PmiPump::Open() {
  int ends[2];
  if (path_.size() >= sizeof sockaddr_un{}.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return -1;
  }
  rank_ = ends[0];
  return ends[1];
}

void PmiPump::Pump(int64_t now_ms) {
  ReadRank();
  if (agent_ < 0 && lines_.HasUnanswered() && now_ms >= dial_at_ms_) {
    Dial(now_ms);
  }
  WriteAgent();
  ReadAgent();
  WriteRank();
  if (lines_.IsRefused() && to_rank_.empty() && rank_ >= 0) {
    shutdown(rank_, SHUT_WR);  // what it says still must not kill it: its exit code is to come
  }
  if (lines_.IsRefused() || (rank_ < 0 && !lines_.HasUnanswered())) {
    Close(agent_);
  }
}

pollfd PmiPump::RankReady() const { return Ready(rank_, !lines_.IsFull(), !to_rank_.empty()); }

pollfd PmiPump::AgentReady() const {
  return Ready(agent_, to_rank_.size() < kUnreadMost, !lines_.ToAgent().empty());
}

int PmiPump::WaitMs(int64_t now_ms) const {
  return agent_ >= 0 || !lines_.HasUnanswered()
             ? -1
             : static_cast<int>(std::clamp<int64_t>(dial_at_ms_ - now_ms, 0, kRedialMs));
}

void PmiPump::ReadRank() {
  const auto take = [this](std::string_view bytes) {
    lines_.TakeFromRank(bytes);
    return !lines_.IsFull();
  };
  if (rank_ >= 0 && !lines_.IsFull() && !Receive(rank_, take)) {
    Close(rank_);
  }
}

void PmiPump::WriteRank() {
  const ssize_t n = rank_ < 0 || to_rank_.empty() ? 0 : Send(rank_, to_rank_);
  to_rank_.erase(0, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  if (n < 0) {
    Close(rank_);
  }
  if (rank_ < 0) {
    to_rank_.clear();
  }
}

// It may not be there, or not know yet what it is to answer.
void PmiPump::Dial(int64_t now_ms) {
  dial_at_ms_ = now_ms + kRedialMs;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof address.sun_path - 1);
  agent_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (agent_ >= 0 && connect(agent_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    Close(agent_);
  }
  lines_.Connect();
}

void PmiPump::WriteAgent() {
  if (agent_ < 0 || lines_.ToAgent().empty()) {
    return;
  }
  const ssize_t n = Send(agent_, lines_.ToAgent());
  if (n < 0) {
    return Close(agent_);
  }
  lines_.Sent(static_cast<size_t>(n));
}

void PmiPump::ReadAgent() {
  const auto take = [this](std::string_view bytes) {
    to_rank_ += lines_.TakeFromAgent(bytes);
    return to_rank_.size() < kUnreadMost;
  };
  if (agent_ >= 0 && to_rank_.size() < kUnreadMost && !Receive(agent_, take)) {
    Close(agent_);
  }
}

}  // namespace sekisho::agent::task
