// SPDX-License-Identifier: Apache-2.0
// What a way carries: one host sends for some time as fast as it can, the other counts and says so.
// docs/protocol/12-topology.md, "Flows".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "topology/probe/dialled.h"
#include "topology/probe/probe_task.h"

namespace sekisho::topology {

class FlowRun final : public ProbeTask {
 public:
  // Sends as soon as it is connected, or then waits for Go(), not for ever.  Who waits knows that
  // others begin at the same time, and counts itself what arrives while all of them send.
  enum class Start { kAtOnce, kWhenTold };
  FlowRun(const ProbeTarget& target, const ProbeKey& key, std::chrono::milliseconds duration,
          Start start = Start::kAtOnce);

  bool IsWaiting() const { return state_ == State::kWaiting; }
  void Go();

  pollfd Watch() const override;
  void Handle(short events) override;
  void Expire(Clock::time_point now) override;
  Clock::time_point deadline() const override { return deadline_; }
  bool IsDone() const override { return state_ == State::kDone; }
  // "bytes us", as the other end counted, or this one; "0 0": it did not work.
  std::string Result() const override { return result_; }

 private:
  enum class State { kConnecting, kWaiting, kBeginning, kSending, kListening, kDone };
  void End(std::string result);

  Dialled peer_;
  ProbeKey key_;
  std::chrono::milliseconds duration_;
  Start start_;
  std::optional<uint64_t> arrived_;  // when it was first looked at
  Clock::time_point looked_at_;
  State state_ = State::kConnecting;
  Clock::time_point deadline_;
  std::string reply_;
  std::string result_ = "0 0";
};

// The other end of it, once who dialled has shown the key.
class SinkTask final : public ProbeTask {
 public:
  static constexpr size_t kHead = 4;  // before what counts: how long it lasts

  explicit SinkTask(int socket);
  ~SinkTask() override;

  pollfd Watch() const override { return {.fd = socket_, .events = POLLIN, .revents = 0}; }
  void Handle(short events) override;
  void Expire(Clock::time_point now) override { is_done_ = is_done_ || now >= deadline_; }
  Clock::time_point deadline() const override { return deadline_; }
  bool IsDone() const override { return is_done_; }
  std::string Result() const override { return {}; }

 private:
  void Count(std::span<const char> bytes, Clock::time_point now);

  int socket_;
  bool is_done_ = false;
  std::array<char, kHead> head_{};
  size_t head_size_ = 0;
  std::chrono::milliseconds duration_{0};  // 0: not told, so all counts
  uint64_t bytes_ = 0;                     // after the first that came
  Clock::time_point first_;
  Clock::time_point last_;
  Clock::time_point deadline_;
};

}  // namespace sekisho::topology
