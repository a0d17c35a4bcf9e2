// SPDX-License-Identifier: Apache-2.0
// Which jobs' tokens for the relay are due to be renewed, and who has them: docs/protocol/10-nxproxy.md, "Job
// tokens".  Pure: time is an argument.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "common/identity/openssl.h"
#include "qserver/job.h"

namespace sekisho::qserver {

class RelayRenewal {
 public:
  explicit RelayRenewal(std::chrono::seconds life) : life_(life) {}

  // One of the job's tasks starts with a token of now.
  void OnStarted(const std::string& job_id, identity::Time now) { since_.try_emplace(job_id, now); }
  // All of its tasks have one of now.
  void OnRenewed(const std::string& job_id, identity::Time now) { since_[job_id] = now; }
  // They have not: they are due again soon, and others before.
  void OnFailed(const std::string& job_id, identity::Time now) { since_[job_id] = now - life_ / 2 + Interval(); }
  // Nobody knows how old one is: its node, or we, were away.
  void OnReturned(const std::string& job_id) { since_[job_id] = identity::Time::min(); }
  void OnEnded(const std::string& job_id) { since_.erase(job_id); }

  // Some `most` of those whose oldest token has lived for half of its life, or comes from a clock that was set back.
  std::vector<std::string> Due(identity::Time now, size_t most) const;
  // How often to look.
  std::chrono::seconds Interval() const;

 private:
  const std::chrono::seconds life_;
  std::map<std::string, identity::Time> since_;  // by job
};

// The tasks and helpers of a job that hold its token: they run, or stand before their exec.
struct TokenHolder {
  std::string node;
  int task = 0;
  friend bool operator==(const TokenHolder&, const TokenHolder&) = default;
};
std::vector<TokenHolder> TokenHolders(const Job& job);

}  // namespace sekisho::qserver
