// SPDX-License-Identifier: Apache-2.0
// One stream: two TCP connections whose bytes, ends and resets go over to each other.  Copies small
// messages through a hot buffer, moves bulk through a pipe (splice), holds no memory while it is
// idle.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "nxproxy/pipe_pool.h"

namespace sekisho::nxproxy {

// What an identity's, an endpoint's or all streams have moved; written by the threads that move
// bytes.
struct Traffic {
  std::string owner;
  std::atomic<uint64_t> bytes_in{0};  // from the peer to the inside
  std::atomic<uint64_t> bytes_out{0};
  std::atomic<int64_t> allowance{0};  // bytes that may still go now, if `is_limited`
  std::atomic<bool> is_limited{false};
};

enum class End : uint8_t { kNone, kClosed, kReset, kIdle, kLifetime, kHalfClosed, kSilent };

// Belongs to the thread that moves it.
class Stream {
 public:
  struct Context {
    PipePool& pipes;
    char* buffer;       // kBufferBytes
    size_t turn_bytes;  // in one direction, then others have their turn
    bool may_splice = true;
  };
  static constexpr size_t kBufferBytes = 64 * 1024;

  // `first` are bytes that side 0 has sent already.
  Stream(Descriptor outside, Descriptor inside, std::string first);

  // After epoll said `events` of side 0 (the peer) or 1 (the inside).
  void OnEvents(int side, uint32_t events);

  enum class Progress : uint8_t {
    kWaiting,    // for events
    kMore,       // the turn is over, the work is not
    kThrottled,  // no allowance
    kEnded,
  };
  Progress Move(Context& context);

  // `bytes` from side `from` were passed on, by itself or by its owner.
  void Count(int from, size_t bytes);
  uint64_t bytes(int from) const { return moved_[from].load(std::memory_order_relaxed); }  // any thread

  // Whether a side's system has answered nothing for so long, though it was asked again and again;
  // to be called several times in that time.  One that says that its program does not read has
  // answered, unlike for TCP_USER_TIMEOUT, which streams therefore do not have.
  bool HasSilentSide(int64_t now_s, int64_t for_s);

  // Both connections are to be reset.
  void Abort(End why);

  // Gives back what it holds; the last call.
  void Close(PipePool& pipes);

  int fd(int side) const { return sides_[side].fd.get(); }
  End end() const { return end_; }
  bool is_half_closed() const { return directions_[0].is_done != directions_[1].is_done; }

  // For the owner.
  uint64_t id = 0;
  uint64_t endpoint = 0;
  uint64_t session = 0;
  std::shared_ptr<Traffic> owner_traffic;  // shared with the owner's other streams
  std::shared_ptr<Traffic>
      endpoint_traffic;  // and the endpoint's; outlives both registers' entries
  int64_t opened_s = 0;
  int64_t active_s = 0;
  uint32_t index = 0;  // in its thread's list
  uint32_t place = 0;  // in the relay's list
  bool is_queued = false;
  bool is_aged = false;

 private:
  struct Side {
    Descriptor fd;
    bool is_readable = false;  // until epoll says so
    bool is_writable = true;
    bool is_lost = false;   // reset, or in error
    bool reads_on = false;  // FIN or urgent data have come: a short read is not the last
    bool has_mark = false;  // urgent data have come, and were not passed on yet
    int64_t unanswered_s = 0;  // since when its system answers nothing; 0: it does, or is not asked
  };
  // From side i to side 1-i.
  struct Direction {
    std::unique_ptr<Pipe> pipe;
    size_t in_pipe = 0;
    std::string left;  // what the other side would not take; empty while idle
    size_t left_from = 0;
    bool is_left_urgent = false;
    uint8_t full_reads = 0;
    uint8_t short_splices = 0;
    bool is_bulk = false;
    bool is_ended = false;  // the source has sent FIN
    bool is_done = false;   // and it was passed on
  };
  enum class Step : uint8_t { kAgain, kWait, kDone };

  Step Flush(int from);
  Step Copy(int from, Context& context, size_t& moved);
  Step Splice(int from, Context& context, size_t& moved);
  void Pass(int from, Context& context, size_t& moved, bool& is_more);
  void PassEnd(int from);
  void Release(Direction& direction, PipePool& pipes);
  void Fail();

  std::array<Side, 2> sides_;
  std::array<Direction, 2> directions_;
  std::array<std::atomic<uint64_t>, 2> moved_{};  // written by one thread
  End end_ = End::kNone;
};

// NODELAY, urgent data in line; ends after `silent_s` without an answer, idle or not.
void TuneSocket(int fd, int silent_s);

// Whether the next byte of the stream is the urgent one.  Reads stop before it; splice(2) then says EAGAIN for ever.
bool IsAtMark(int fd);

}  // namespace sekisho::nxproxy
