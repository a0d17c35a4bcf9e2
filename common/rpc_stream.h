// SPDX-License-Identifier: Apache-2.0
// What a stream's two ends have in common, for rpc_client.h and rpc_server.h: reading, and writing one by one
// or from a queue, awaited on the loop while gRPC's threads only post.
//
// `Call` is a reactor with loop_, changed_, IsOver() (nothing more can be written) and Keep() (what must live
// until a reaction that was posted has run).
#pragma once

#include <deque>
#include <utility>

#include "common/loop.h"

namespace sekisho::rpc::internal {

template <typename Call, typename In>
class Reading : public Call {
 public:
  using Call::Call;

  // False: the peer has sent its last.
  awaitable<bool> Read(In& message) {
    is_reading_ = true;
    this->StartRead(&incoming_);
    while (is_reading_) {
      co_await this->changed_.Wait();
    }
    message = std::move(incoming_);
    co_return is_read_ok_;
  }

  void OnReadDone(bool ok) override {
    asio::post(this->loop_, [this, ok, keep = this->Keep()] {
      is_reading_ = false;
      is_read_ok_ = ok;
      this->changed_.Notify();
    });
  }

 private:
  In incoming_;  // gRPC's until OnReadDone, even if its reader is cancelled
  bool is_reading_ = false;
  bool is_read_ok_ = true;
};

template <typename Call, typename Out>
class Writing : public Call {
 public:
  using Call::Call;

  // Returns when gRPC has taken it; false: the peer is gone.
  awaitable<bool> Write(Out message) {
    outgoing_ = std::move(message);
    is_writing_ = true;
    this->StartWrite(&outgoing_);
    while (is_writing_) {
      co_await this->changed_.Wait();
    }
    co_return is_write_ok_;
  }

  void OnWriteDone(bool ok) override {
    asio::post(this->loop_, [this, ok, keep = this->Keep()] {
      is_writing_ = false;
      is_write_ok_ = ok;
      this->changed_.Notify();
    });
  }

 private:
  Out outgoing_;  // gRPC's until OnWriteDone, even if its writer is cancelled
  bool is_writing_ = false;
  bool is_write_ok_ = true;
};

// Writes are queued (watch `queued()`), or awaited with Drain().  A client's call that is let go with some in the queue
// is on another hold until they have gone: its end, which may have come already, would take it away under them.
template <typename Call, typename Out>
class Queueing : public Call {
 public:
  using Call::Call;

  void Push(Out message) {
    if (is_broken_ || is_closing_ || this->IsOver()) {
      return;
    }
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) {
      if constexpr (kHasHolds) {
        this->AddHold();
      }
      this->StartWrite(&queue_.front());
    }
  }
  size_t queued() const { return queue_.size(); }

  // Waits until at most `most` messages are queued; false: the peer is gone.
  awaitable<bool> Drain(size_t most = 0) {
    while (queue_.size() > most && !is_broken_ && !this->IsOver()) {
      co_await this->changed_.Wait();
    }
    co_return !is_broken_ && !this->IsOver();
  }

  // A client's: no more writes; what is queued is still sent.
  void CloseWrites() {
    is_closing_ = true;
    if (queue_.empty() && !is_broken_ && !this->IsOver()) {
      this->StartWritesDone();
    }
  }

  void OnWriteDone(bool ok) override {
    asio::post(this->loop_, [this, ok, keep = this->Keep()] {
      queue_.pop_front();
      if (!ok) {
        is_broken_ = true;
        queue_.clear();
      } else if (!queue_.empty() && (kHasHolds || !this->IsOver())) {
        this->StartWrite(&queue_.front());
      } else if constexpr (requires { this->StartWritesDone(); }) {
        if (is_closing_ && queue_.empty()) {
          this->StartWritesDone();
        }
      }
      if constexpr (kHasHolds) {
        if (queue_.empty()) {
          this->RemoveHold();
        }
      }
      this->changed_.Notify();
    });
  }

 private:
  static constexpr bool kHasHolds = requires(Call& call) { call.AddHold(); };

  std::deque<Out> queue_;
  bool is_broken_ = false;
  bool is_closing_ = false;
};

}  // namespace sekisho::rpc::internal
