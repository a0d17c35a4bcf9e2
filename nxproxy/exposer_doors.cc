// SPDX-License-Identifier: Apache-2.0
// The exposer's data connections: doors, which wait at the upstream for a peer, and the targets inside.
#include "nxproxy/exposer_doors.h"

#include <cerrno>

#include <sys/socket.h>

#include "common/log.h"
#include "common/refusal.h"
#include "nxproxy/wire/ticket.h"

namespace sekisho::nxproxy {
namespace {

constexpr int64_t kDial_ms = 5000;
constexpr int64_t kDoorPause_ms = 500;
constexpr size_t kDoorsDialledAtOnce = 64;

}  // namespace

void Exposer::DialDoor(uint64_t stream) {
  if (doors_.size() > spares_wanted_ + kDoorsDialledAtOnce * 16) {
    return;
  }
  auto door = std::make_unique<Door>(*this);
  door->stream = stream;
  door->is_spare = stream == 0;
  door->socket = BeginConnect(upstream_);
  if (!door->socket.is_open()) {
    door_after_ms_ = now_ms_ + kDoorPause_ms;
    return;
  }
  TuneSocket(door->socket.get(), 600);
  poller_.Add(door->socket.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, door.get());
  spares_ += door->is_spare ? 1 : 0;
  Door* raw = door.get();
  doors_.emplace(raw, std::move(door));
}

void Exposer::Refill() {
  while (session_ != 0 && !is_draining_ && control_ != nullptr && spares_ < spares_wanted_ &&
         now_ms_ >= door_after_ms_) {
    const size_t before = spares_;
    DialDoor(0);
    if (spares_ == before) {
      return;
    }
  }
}

void Exposer::DoorEvent(Door& door) {
  const auto at = doors_.find(&door);
  if (at == doors_.end()) {
    return;
  }
  const auto drop = [&] {
    spares_ -= door.is_spare ? 1 : 0;
    dead_.push_back(std::shared_ptr<Door>(std::move(at->second)));
    doors_.erase(at);
  };
  if (!door.is_connected) {
    if (ConnectError(door.socket.get()) != 0) {
      door_after_ms_ = now_ms_ + kDoorPause_ms;
      drop();
      return;
    }
    const std::string preface = wire::Seal({.kind = wire::Kind::kAccept,
                                            .session = session_,
                                            .counter = ++counter_,
                                            .stream = door.stream},
                                           key_);
    const ssize_t sent = send(door.socket.get(), preface.data(), preface.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) {
      return;  // not connected yet
    }
    if (sent != static_cast<ssize_t>(preface.size())) {
      drop();
      return;
    }
    door.is_connected = true;
  }
  char bytes[wire::kOpeningBytes];
  const ssize_t got = recv(door.socket.get(), bytes, sizeof bytes, MSG_PEEK);
  if (got < 0 && errno == EAGAIN) {
    return;
  }
  if (got > 0 && static_cast<size_t>(got) < sizeof bytes) {
    return;  // the rest comes with another event
  }
  const auto opening = got > 0 ? wire::DecodeOpening({bytes, sizeof bytes}) : std::nullopt;
  if (!opening || opening->code != wire::Code::kOk) {
    door_after_ms_ = now_ms_ + kDoorPause_ms;
    drop();
    return;
  }
  recv(door.socket.get(), bytes, sizeof bytes, 0);
  Opened(door, *opening);
  drop();
  Refill();
}

void Exposer::Opened(Door& door, const wire::Opening& opening) {
  poller_.Remove(door.socket.get());
  auto inner = std::make_unique<Inner>(*this);
  inner->outside = std::move(door.socket);
  inner->peer = opening.peer;
  for (const Exposure& exposure : exposures_) {
    if (exposure.endpoint == opening.endpoint) {
      inner->exposure = &exposure;
    }
  }
  if (inner->exposure == nullptr) {
    Reset(std::move(inner->outside));
    return;
  }
  const auto target = Resolve(inner->exposure->target);
  if (target.ok()) {
    inner->target = BeginConnect(*target);
  }
  if (!inner->target.is_open()) {
    spdlog::warn("target {} cannot be reached: {}", inner->exposure->target,
                 target.ok() ? strerror(errno) : Printable(Message(target.status())));
    Reset(std::move(inner->outside));
    return;
  }
  TuneSocket(inner->target.get(), 600);
  inner->deadline_ms = now_ms_ + kDial_ms;
  poller_.Add(inner->target.get(), EPOLLOUT, inner.get());
  Inner* raw = inner.get();
  inners_.emplace(raw, std::move(inner));
}

void Exposer::Dialled(Inner& inner) {
  const auto at = inners_.find(&inner);
  if (at == inners_.end()) {
    return;
  }
  const std::shared_ptr<Inner> done(std::move(at->second));
  inners_.erase(at);
  dead_.push_back(done);
  poller_.Remove(inner.target.get());
  if (const int error = ConnectError(inner.target.get()); error != 0) {
    spdlog::warn("target {} cannot be reached: {}", inner.exposure->target, strerror(error));
    Reset(std::move(inner.outside));
    return;
  }
  relay_.Join(std::move(inner.outside), std::move(inner.target), "", inner.exposure->traffic);
}

}  // namespace sekisho::nxproxy
