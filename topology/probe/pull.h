// SPDX-License-Identifier: Apache-2.0
// One hop of a broadcast: the later host dials the earlier one, says how much it has, and gets the
// rest as it comes in there.  docs/protocol/12-topology.md, "Copies".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/probe/copy.h"
#include "topology/probe/dialled.h"
#include "topology/probe/probe_task.h"

namespace sekisho::topology {

class PullRun final : public ProbeTask {
 public:
  // `copy` outlives this.
  PullRun(const ProbeTarget& target, const ProbeKey& key, Copy& copy);

  pollfd Watch() const override;
  void Handle(short events) override;
  void Expire(Clock::time_point now) override;
  Clock::time_point deadline() const override;
  bool IsDone() const override { return is_done_; }
  // "have", in bytes; and why, if that is not all.
  std::string Result() const override;

 private:
  void End(std::string why);
  void TakeFrames();
  void SetWindow(Clock::time_point now);
  // That the next host comes after.
  bool IsWaiting(Clock::time_point now) const {
    return is_connected_ && copy_.pace().IsFarAhead(copy_.have(), now);
  }

  Dialled peer_;
  ProbeKey key_;
  Copy& copy_;
  bool is_connected_ = false;
  bool is_done_ = false;
  std::string why_;
  std::string unread_;
  size_t frame_left_ = 0;
  int window_ = 0;  // what may be on its way here; 0: as much as TCP likes
  Clock::time_point waited_{};
  Clock::time_point deadline_;
};

// The earlier host's side, once who dialled has shown the key.
class ServeTask final : public ProbeTask {
 public:
  // `copy` may be null, which ends it at once; else it outlives this.
  ServeTask(int socket, Copy* copy);
  ~ServeTask() override;

  pollfd Watch() const override;
  void Handle(short events) override;
  void Expire(Clock::time_point now) override;
  Clock::time_point deadline() const override { return deadline_; }
  bool IsDone() const override { return is_done_; }
  std::string Result() const override { return {}; }

 private:
  bool ReadOffset();
  void KeepPace(Clock::time_point now);
  bool Fill();

  int socket_;
  Copy* copy_;
  bool is_done_ = false;
  bool has_offset_ = false;
  std::string asked_;
  uint64_t offset_ = 0;
  std::string unsent_;  // one frame, or the rest of it
  size_t sent_ = 0;
  Clock::time_point deadline_;
};

}  // namespace sekisho::topology
