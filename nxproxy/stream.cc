// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/stream.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sekisho::nxproxy {
namespace {

constexpr uint8_t kFullReadsToBulk = 4;
constexpr uint8_t kShortSplicesToCopy = 4;
constexpr size_t kShort = 16 * 1024;
constexpr int kMostProbes = 127;  // that Linux counts

void SetOption(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

void TuneSocket(int fd, int silent_s) {
  const int idle_s = std::clamp(silent_s / 4, 1, 30);
  const int interval_s = std::clamp(silent_s / 8, 1, 10);
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_OOBINLINE, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, silent_s * 1000);
  // Without a user timeout (of streams) the kernel counts probes.
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT,
            std::clamp((silent_s - idle_s) / interval_s, 1, kMostProbes));
}

bool IsAtMark(int fd) {
  int is_at = 0;
  return ioctl(fd, SIOCATMARK, &is_at) == 0 && is_at != 0;
}

Stream::Stream(Descriptor outside, Descriptor inside, std::string first) {
  sides_[0].fd = std::move(outside);
  sides_[1].fd = std::move(inside);
  for (const Side& side : sides_) {
    SetOption(side.fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
  }
  directions_[0].left = std::move(first);
}

void Stream::OnEvents(int side, uint32_t events) {
  if ((events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    sides_[side].is_readable = true;
    sides_[side].reads_on = sides_[side].reads_on || (events & ~EPOLLIN & ~EPOLLOUT) != 0;
    sides_[side].has_mark = sides_[side].has_mark || (events & EPOLLPRI) != 0;
  }
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
    sides_[side].is_writable = true;
  }
  if ((events & EPOLLERR) != 0 && end_ == End::kNone) {
    sides_[side].is_lost = true;
    Fail();  // now: its reader may be stuck behind a full other side
  }
}

bool Stream::HasSilentSide(int64_t now_s, int64_t for_s) {
  for (Side& side : sides_) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(side.fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        info.tcpi_retransmits + info.tcpi_probes == 0) {
      side.unanswered_s = 0;
      continue;
    }
    if (side.unanswered_s == 0 || info.tcpi_last_ack_recv < (now_s - side.unanswered_s) * 1000) {
      side.unanswered_s = now_s;
    }
    if (now_s - side.unanswered_s >= for_s) {
      return true;
    }
  }
  return false;
}

void Stream::Abort(End why) {
  if (end_ != End::kNone) {
    return;
  }
  end_ = why;
  const linger now{.l_onoff = 1, .l_linger = 0};
  for (const Side& side : sides_) {
    if (!side.is_lost) {
      setsockopt(side.fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
  }
}

void Stream::Fail() { Abort(End::kReset); }

void Stream::Close(PipePool& pipes) {
  for (Direction& direction : directions_) {
    if (direction.pipe != nullptr) {
      direction.in_pipe == 0 ? pipes.Return(std::move(direction.pipe))
                             : pipes.Discard(std::move(direction.pipe));
    }
  }
  for (Side& side : sides_) {
    side.fd.reset();
  }
}

void Stream::Count(int from, size_t bytes) {
  moved_[from].store(this->bytes(from) + bytes, std::memory_order_relaxed);
  for (Traffic* traffic : {owner_traffic.get(), endpoint_traffic.get()}) {
    if (traffic != nullptr) {
      (from == 0 ? traffic->bytes_in : traffic->bytes_out)
          .fetch_add(bytes, std::memory_order_relaxed);
      if (traffic->is_limited.load(std::memory_order_relaxed)) {
        traffic->allowance.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
      }
    }
  }
}

void Stream::Release(Direction& direction, PipePool& pipes) {
  if (direction.pipe != nullptr && direction.in_pipe == 0) {
    pipes.Return(std::move(direction.pipe));
  }
}

// Writes what a short write left.  kAgain: nothing is left.
Stream::Step Stream::Flush(int from) {
  Direction& direction = directions_[from];
  Side& to = sides_[1 - from];
  while (direction.left_from < direction.left.size()) {
    if (!to.is_writable) {
      return Step::kWait;
    }
    const ssize_t sent = send(to.fd.get(), direction.left.data() + direction.left_from,
                              direction.left.size() - direction.left_from,
                              direction.is_left_urgent ? MSG_NOSIGNAL | MSG_OOB : MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN) {
        to.is_writable = false;
        return Step::kWait;
      }
      Fail();
      return Step::kDone;
    }
    direction.left_from += static_cast<size_t>(sent);
  }
  if (direction.left_from > 0) {
    std::string().swap(direction.left);
    direction.left_from = 0;
    direction.is_left_urgent = false;
  }
  return Step::kAgain;
}

Stream::Step Stream::Copy(int from, Context& context, size_t& moved) {
  Direction& direction = directions_[from];
  Side& source = sides_[from];
  Side& to = sides_[1 - from];
  const int fd = source.fd.get();
  bool is_urgent = source.has_mark && IsAtMark(fd);
  ssize_t got = 1;
  if (!source.has_mark && (source.reads_on || direction.full_reads > 0)) {
    // Not called by epoll: what has come since it spoke may be urgent, and only of a byte that is there it can be asked.
    got = recv(fd, context.buffer, 1, MSG_PEEK);
    is_urgent = got > 0 && IsAtMark(fd);
  }
  if (got > 0) {
    got = recv(fd, context.buffer, is_urgent ? 1 : kBufferBytes, 0);
  }
  if (got <= 0) {
    if (got < 0 && errno == EAGAIN) {
      source.is_readable = false;
      source.has_mark = false;
      direction.full_reads = 0;
      return Step::kWait;
    }
    if (got < 0) {
      Fail();
      return Step::kDone;
    }
    direction.is_ended = true;
    return Step::kAgain;
  }
  const auto length = static_cast<size_t>(got);
  moved += length;
  Count(from, length);
  source.is_readable = length == kBufferBytes || source.reads_on;
  direction.full_reads = length == kBufferBytes ? direction.full_reads + 1 : 0;
  if (direction.full_reads >= kFullReadsToBulk) {
    direction.is_bulk = true;
    direction.short_splices = 0;
  }
  source.has_mark = source.has_mark && !is_urgent;
  const int flags = is_urgent ? MSG_NOSIGNAL | MSG_OOB : MSG_NOSIGNAL;
  const ssize_t sent = to.is_writable ? send(to.fd.get(), context.buffer, length, flags) : 0;
  if (sent < 0 && errno != EAGAIN) {
    Fail();
    return Step::kDone;
  }
  const size_t taken = sent < 0 ? 0 : static_cast<size_t>(sent);
  if (taken < length) {
    to.is_writable = false;
    direction.left.assign(context.buffer + taken, length - taken);
    direction.is_left_urgent = is_urgent;
  }
  return Step::kAgain;
}

// EAGAIN from a socket into a pipe has two meanings; it is only asked with an empty pipe, so it has
// one.
Stream::Step Stream::Splice(int from, Context& context, size_t& moved) {
  Direction& direction = directions_[from];
  Side& source = sides_[from];
  Side& to = sides_[1 - from];
  constexpr unsigned kFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
  if (direction.in_pipe == 0) {
    const ssize_t got = splice(source.fd.get(), nullptr, direction.pipe->write.get(), nullptr,
                               direction.pipe->capacity, kFlags);
    if (got <= 0) {
      if (got < 0 && errno == EAGAIN) {
        source.is_readable = false;
        return Step::kWait;
      }
      if (got < 0 && errno == EINVAL) {  // not a socket that can be spliced
        direction.is_bulk = false;
        context.may_splice = false;
        return Step::kAgain;
      }
      if (got < 0) {
        Fail();
        return Step::kDone;
      }
      direction.is_ended = true;
      return Step::kAgain;
    }
    direction.in_pipe = static_cast<size_t>(got);
    direction.short_splices = direction.in_pipe < kShort ? direction.short_splices + 1 : 0;
    moved += direction.in_pipe;
    Count(from, direction.in_pipe);
  }
  while (direction.in_pipe > 0) {
    if (!to.is_writable) {
      return Step::kWait;
    }
    const ssize_t sent = splice(direction.pipe->read.get(), nullptr, to.fd.get(), nullptr,
                                direction.in_pipe, kFlags);
    if (sent < 0) {
      if (errno == EAGAIN) {
        to.is_writable = false;
        return Step::kWait;
      }
      Fail();
      return Step::kDone;
    }
    direction.in_pipe -= static_cast<size_t>(sent);
  }
  if (direction.short_splices >= kShortSplicesToCopy) {
    direction.is_bulk = false;
    direction.full_reads = 0;
    Release(direction, context.pipes);
  }
  return Step::kAgain;
}

void Stream::PassEnd(int from) {
  Direction& direction = directions_[from];
  shutdown(sides_[1 - from].fd.get(), SHUT_WR);
  direction.is_done = true;
}

void Stream::Pass(int from, Context& context, size_t& moved, bool& is_more) {
  Direction& direction = directions_[from];
  Step step = Step::kAgain;
  while (step == Step::kAgain && end_ == End::kNone && !direction.is_done) {
    if (direction.in_pipe > 0) {
      step = Splice(from, context, moved);
      continue;
    }
    step = Flush(from);
    if (step != Step::kAgain) {
      break;
    }
    if (direction.is_ended) {
      PassEnd(from);
      break;
    }
    if (moved >= context.turn_bytes) {
      is_more = true;
      return;  // with its pipe: it goes on at once
    }
    if (!sides_[from].is_readable || !sides_[1 - from].is_writable) {
      break;
    }
    const bool may_splice = direction.is_bulk && context.may_splice && !sides_[from].has_mark;
    if (may_splice && direction.pipe == nullptr) {
      direction.pipe = context.pipes.Take();
    }
    step = may_splice && direction.pipe != nullptr ? Splice(from, context, moved)
                                                   : Copy(from, context, moved);
  }
  Release(direction, context.pipes);
}

Stream::Progress Stream::Move(Context& context) {
  if (end_ == End::kNone && owner_traffic != nullptr &&
      owner_traffic->is_limited.load(std::memory_order_relaxed)) {
    const int64_t allowance = owner_traffic->allowance.load(std::memory_order_relaxed);
    if (allowance <= 0) {
      return Progress::kThrottled;
    }
    context.turn_bytes = std::min(context.turn_bytes, static_cast<size_t>(allowance));
  }
  bool is_more = false;
  for (int from = 0; from < 2 && end_ == End::kNone; ++from) {
    size_t moved = 0;
    Pass(from, context, moved, is_more);
  }
  if (end_ == End::kNone && directions_[0].is_done && directions_[1].is_done) {
    end_ = End::kClosed;
  }
  if (end_ != End::kNone) {
    return Progress::kEnded;
  }
  return is_more ? Progress::kMore : Progress::kWaiting;
}

}  // namespace sekisho::nxproxy
