// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/arrivals.h"

#include <algorithm>
#include <cerrno>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/reversal.h"
#include "nxproxy/client/porter/sockets.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr size_t kWaitingMax = 1024;
constexpr int64_t kInvitedMs = 5000;

}  // namespace

Arrivals::Arrivals(Loop& loop, Session& session, OnJoined on_joined)
    : loop_(loop), session_(session), on_joined_(std::move(on_joined)) {}

Arrivals::~Arrivals() {
  loop_.Cancel(retry_);
  for (const auto& [fd, waiting] : waiting_) {
    loop_.Cancel(waiting.limit);
    loop_.Forget(fd);
    close(fd);
  }
}

void Arrivals::Want(size_t spares, bool is_v6) {
  wanted_ = spares;
  is_v6_ = is_v6;
  Fill();
}

void Arrivals::Renew() {
  while (!waiting_.empty()) {
    Drop(waiting_.begin()->first);
  }
  failures_ = 0;
  Fill();
}

bool Arrivals::Dial(uint64_t stream) {
  const std::string preface = waiting_.size() < kWaitingMax ? session_.MintAccept(stream) : "";
  const int fd = preface.empty() ? -1 : DialWith(session_.dial_address(), is_v6_, preface);
  if (fd < 0) {
    return false;
  }
  waiting_[fd].is_spare = stream == 0;
  spares_ += stream == 0 ? 1 : 0;
  loop_.Watch(fd, EPOLLIN, [this, fd](uint32_t) { OnEvents(fd); });
  return true;
}

void Arrivals::Fill() {
  loop_.Cancel(retry_);
  retry_ = 0;
  if (failures_ > 0) {
    // The relay takes none, or is away: not in a circle.
    retry_ = loop_.After(std::min(100 << std::min(failures_, 6), 5000), [this] {
      failures_ = 0;
      Fill();
    });
    return;
  }
  while (session_.is_up() && spares_ < wanted_ && Dial(0)) {
  }
}

void Arrivals::Take(const wire::Message& announce) {
  if (!Dial(announce.stream)) {
    wire::Message reject;
    reject.verb = wire::Verb::kReject;
    reject.stream = announce.stream;
    reject.code = static_cast<uint64_t>(wire::Code::kNobodyHome);
    session_.Tell(reject);
  }
}

void Arrivals::Follow(const wire::Message& invited) {
  const auto address = wire::ParseAddress(invited.address);
  if (!address || waiting_.size() >= kWaitingMax) {
    return;
  }
  const int fd = DialWith(*address, is_v6_, ShownOf(invited.cookie));
  if (fd < 0) {
    return;
  }
  waiting_[fd].invited = invited.endpoint;
  waiting_[fd].limit = loop_.After(kInvitedMs, [this, fd] { Drop(fd); });
  loop_.Watch(fd, EPOLLIN, [this, fd](uint32_t) { OnEvents(fd); });
}

void Arrivals::Drop(int fd) {
  const auto found = waiting_.find(fd);
  loop_.Cancel(found->second.limit);
  spares_ -= found->second.is_spare ? 1 : 0;
  waiting_.erase(found);
  loop_.Forget(fd);
  close(fd);
}

void Arrivals::OnEvents(int fd) {
  const auto found = waiting_.find(fd);
  if (found == waiting_.end()) {
    return;
  }
  std::string& opening = found->second.opening;
  char buffer[wire::kOpeningBytes];
  const ssize_t got = recv(fd, buffer, wire::kOpeningBytes - opening.size(), 0);
  if (got < 0 && errno == EAGAIN) {
    return;
  }
  if (got <= 0) {
    failures_ += found->second.is_spare ? 1 : 0;
    Drop(fd);
    Fill();
    return;
  }
  opening.append(buffer, static_cast<size_t>(got));
  if (opening.size() < wire::kOpeningBytes) {
    return;
  }
  auto decoded = wire::DecodeOpening(opening);
  if (!decoded || decoded->code != wire::Code::kOk) {
    failures_ += found->second.is_spare ? 1 : 0;
    Drop(fd);
    Fill();
    return;
  }
  if (found->second.invited != 0) {
    decoded->endpoint = found->second.invited;  // whatever who invited us says
  } else {
    failures_ = 0;
  }
  loop_.Cancel(found->second.limit);
  spares_ -= found->second.is_spare ? 1 : 0;
  waiting_.erase(found);
  loop_.Forget(fd);
  Fill();
  on_joined_(*decoded, fd);
}

}  // namespace sekisho::nxproxy::client
