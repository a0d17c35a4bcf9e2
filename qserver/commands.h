// SPDX-License-Identifier: Apache-2.0
// Users' commands, each once and in the order in which they were signed: what a broken machine on
// the way recorded and sends again, or holds back, changes nothing.  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/identity/freshness.h"
#include "common/status.h"

namespace sekisho::qserver {

class Commands {
 public:
  static constexpr size_t kPerSubject = 1000;  // within the window

  // `window` as of CheckFreshness; `started`: this daemon, which knows of none before.
  Commands(std::chrono::seconds window, identity::Time started)
      : window_(window), started_(started) {}

  struct Command {
    std::string subject;
    std::string request_id;
    std::string job_id;
    int64_t time_ms = 0;     // as signed
    bool is_cancel = false;  // a job ends once: it may come at any time
  };
  // True: to be carried out.  False: it was.
  absl::StatusOr<bool> Accept(const Command& command, identity::Time now);
  // It was not carried out after all: it may come again.
  void Withdraw(const Command& command);

 private:
  const std::chrono::seconds window_;
  const identity::Time started_;
  std::map<std::string, identity::ReplaySet> seen_;  // by subject
  std::map<std::string, int64_t> last_ms_;           // by job, of what is no cancellation
};

}  // namespace sekisho::qserver
