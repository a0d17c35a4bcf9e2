// SPDX-License-Identifier: Apache-2.0
// What a rank has said to its process manager and has no answer to, numbered: it is said again to the agent that
// comes after one that was killed.  docs/protocol/15-mpirun.md, "An agent that is killed".  Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sekisho::agent::task {

class PmiLines {
 public:
  // "sekisho JOB TASK TOKEN": what a connection to an agent begins with.
  explicit PmiLines(std::string greeting) : greeting_(std::move(greeting)) {}

  // A new connection: what ToAgent has said on an earlier one counts as unheard.
  void Connect();
  void TakeFromRank(std::string_view bytes);
  // What the rank is to read of that.
  std::string TakeFromAgent(std::string_view bytes);

  const std::string& ToAgent() const { return to_agent_; }
  void Sent(size_t bytes) { to_agent_.erase(0, bytes); }

  bool HasUnanswered() const { return !unanswered_.empty(); }
  // It is to say no more for now.
  bool IsFull() const;
  // It said what is no PMI, and is heard no more.
  bool IsRefused() const { return is_refused_; }

 private:
  void Answered(uint64_t number);
  void Refuse();

  const std::string greeting_;
  std::string from_rank_;   // a line that has not ended
  std::string from_agent_;  // another
  std::string unanswered_;  // whole lines
  uint64_t first_ = 1;      // number of the first of them
  uint64_t next_ = 1;       // of the line that is said next
  std::string to_agent_;
  bool is_refused_ = false;
};

}  // namespace sekisho::agent::task
