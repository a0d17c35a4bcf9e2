// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/pump.h"

#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/sockets.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr size_t kChunk = 256 * 1024;

bool WriteAll(int fd, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t wrote = write(fd, bytes, count);
    if (wrote < 0 && errno != EINTR) {
      return false;
    }
    bytes += wrote > 0 ? wrote : 0;
    count -= wrote > 0 ? static_cast<size_t>(wrote) : 0;
  }
  return true;
}

}  // namespace

Pump::Pump(Loop& loop, int one, int other, std::function<void()> on_end)
    : loop_(loop), on_end_(std::move(on_end)), there_{one, other, {}}, back_{other, one, {}} {
  for (const int fd : {one, other}) {
    loop_.Watch(fd, EPOLLIN, [this](uint32_t) { Move(); });
  }
}

Pump::~Pump() {
  for (const int fd : {there_.from, there_.to}) {
    loop_.Forget(fd);
    close(fd);
  }
}

void Pump::Move() {
  if (!Move(there_) || !Move(back_)) {
    for (const int fd : {there_.from, there_.to}) {
      const linger now = {1, 0};
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    End();
  } else if (there_.is_passed && back_.is_passed) {
    End();
  } else {
    Watch();
  }
}

// Once: the other descriptor may have an event in the same turn, before we are destroyed.
void Pump::End() {
  loop_.Forget(there_.from);
  loop_.Forget(there_.to);
  const auto on_end = on_end_;
  on_end();
}

bool Pump::Move(Way& way) {
  if (way.waiting.empty() && !way.is_ended) {
    way.waiting.resize(kChunk);
    const ssize_t got = recv(way.from, way.waiting.data(), kChunk, 0);
    const int error = errno;
    way.waiting.resize(got > 0 ? static_cast<size_t>(got) : 0);
    if (got < 0 && error != EAGAIN) {
      return false;
    }
    way.is_ended = got == 0;
  }
  if (!way.waiting.empty()) {
    const ssize_t sent = send(way.to, way.waiting.data(), way.waiting.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
      return false;
    }
    way.waiting.erase(0, sent > 0 ? static_cast<size_t>(sent) : 0);
  }
  if (way.waiting.empty() && way.is_ended && !way.is_passed) {
    way.is_passed = true;
    shutdown(way.to, SHUT_WR);
  }
  return true;
}

void Pump::Watch() {
  const auto events_of = [](const Way& reads, const Way& writes) {
    const bool wants_read = reads.waiting.empty() && !reads.is_ended;
    return (wants_read ? EPOLLIN : 0u) | (writes.waiting.empty() ? 0u : EPOLLOUT);
  };
  loop_.Change(there_.from, events_of(there_, back_));
  loop_.Change(back_.from, events_of(back_, there_));
}

int PumpStandard(int socket) {
  std::string buffer(kChunk, 0);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  bool reads_input = true;
  while (true) {
    pollfd both[2] = {{socket, POLLIN, 0}, {reads_input ? 0 : -1, POLLIN, 0}};
    if (poll(both, 2, -1) < 0 && errno != EINTR) {
      return errno;
    }
    if (both[0].revents != 0) {
      const ssize_t got = recv(socket, buffer.data(), buffer.size(), 0);
      if (got <= 0) {
        return got < 0 ? errno : 0;
      }
      if (!WriteAll(1, buffer.data(), static_cast<size_t>(got))) {
        return errno;
      }
    }
    if (both[1].revents != 0) {
      const ssize_t got = read(0, buffer.data(), buffer.size());
      if (got <= 0) {
        reads_input = false;
        shutdown(socket, SHUT_WR);
      } else if (!WriteAll(socket, buffer.data(), static_cast<size_t>(got))) {
        return errno;
      }
    }
  }
}

}  // namespace sekisho::nxproxy::client
