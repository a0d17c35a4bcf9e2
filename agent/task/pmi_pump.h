// SPDX-License-Identifier: Apache-2.0
// Between a rank and the agent, whichever runs: the rank's connection to its process manager ends here, where the
// agent's death does not end it.
#pragma once

#include <poll.h>
#include <cstdint>
#include <string>

#include "agent/task/pmi_lines.h"
#include "agent/task/spec.h"

namespace sekisho::agent::task {

class PmiPump {
 public:
  explicit PmiPump(const Spec& spec);
  ~PmiPump();
  PmiPump(const PmiPump&) = delete;
  PmiPump& operator=(const PmiPump&) = delete;

  // The rank's end; -1 with errno.
  int Open();
  // Moves what can be moved; `now_ms` by the monotonic clock.
  void Pump(int64_t now_ms);
  // When to do that again: once one of these is ready, or so much later; -1: as long as it takes.
  pollfd RankReady() const;
  pollfd AgentReady() const;
  int WaitMs(int64_t now_ms) const;

 private:
  void ReadRank();
  void WriteRank();
  void Dial(int64_t now_ms);
  void WriteAgent();
  void ReadAgent();

  const std::string path_;  // of the agent's door
  PmiLines lines_;
  int rank_ = -1;
  int agent_ = -1;
  std::string to_rank_;
  int64_t dial_at_ms_ = 0;
};

}  // namespace sekisho::agent::task
