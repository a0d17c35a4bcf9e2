// SPDX-License-Identifier: Apache-2.0
// The durable events of each account in order, for the jobmanagers that follow them.  The newest are here; of older
// ones, which are seldom wanted, only their numbers and jobs: the rest is in the store.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "proto/job.pb.h"

namespace sekisho::qserver {

class Journal {
 public:
  static constexpr size_t kBytes = 512 << 10;  // of the newest events of an account

  // `event` is on disk and has its sequence number, larger than all before.
  void Add(const std::string& account, const proto::JobEvent& event);

  // The first events of `account` after a position, at most `limit`.
  struct Found {
    proto::JobEvent event;
    bool is_cut = false;  // only its number and job: the rest is in the store
  };
  std::vector<Found> After(const std::string& account, uint64_t sequence, size_t limit) const;

  void Forget(const std::unordered_set<std::string>& jobs);

 private:
  struct Entry {
    uint64_t sequence;
    std::string job_id;
  };
  struct Account {
    std::deque<Entry> entries;
    std::deque<std::string> newest;  // the last of them; message objects would take several times as much
    size_t bytes = 0;                // of these
  };
  std::unordered_map<std::string, Account> accounts_;
};

}  // namespace sekisho::qserver
