// SPDX-License-Identifier: Apache-2.0
// The streams that one thread moves.
#pragma once

#include <memory>
#include <vector>

#include "nxproxy/poller.h"
#include "nxproxy/stream.h"

namespace sekisho::nxproxy {

struct StreamLimits {
  int64_t idle_s = 0;
  int64_t half_closed_s = 3600;
  int64_t lifetime_s = 0;
  int64_t silent_s = 600;
  size_t pipes = 64;
  bool may_splice = true;
  size_t turn_bytes = 4 << 20;  // of a stream in one direction, then others have their turn
};

class StreamLoop final : public Tagged {
 public:
  using Streams = std::vector<std::unique_ptr<Stream>>;

  // `epoll`: the thread's, where the streams' events come with numbers for OnTagged.
  // `lets_go`: a stream that has more to do than a turn's work is not kept (TakeRestless).
  StreamLoop(int epoll, const StreamLimits& limits, bool lets_go);
  ~StreamLoop();  // resets the streams that are left
  StreamLoop(const StreamLoop&) = delete;
  StreamLoop& operator=(const StreamLoop&) = delete;

  size_t size() const { return all_.size(); }
  bool is_busy() const { return !queued_.empty(); }
  int Timeout_ms() const;  // until EndTurn() is due by itself; -1: never

  void Take(std::unique_ptr<Stream> stream);
  void OnTagged(uint64_t number, uint32_t events) override;
  void EndTurn();  // after a turn's events: what was put off, and what has waited for too long

  Streams TakeEnded();     // since the last call; they are closed
  Streams TakeRestless();  // to be moved by somebody else
  Streams TakeAged();      // those that were here at the last call already

 private:
  void Handle(Stream* stream);
  std::unique_ptr<Stream> Remove(Stream* stream);
  void Sweep();

  const StreamLimits limits_;
  const bool lets_go_;
  const int epoll_;
  PipePool pipes_;
  std::unique_ptr<char[]> buffer_;
  std::vector<Stream*> all_;
  std::vector<Stream*> queued_;  // more to do, or (the second) no allowance
  std::vector<Stream*> throttled_;
  std::vector<Stream*> ended_;
  std::vector<Stream*> restless_;
  std::vector<Stream*> turn_;
  int64_t now_s_ = 0;
  int64_t swept_s_ = 0;
};

}  // namespace sekisho::nxproxy
