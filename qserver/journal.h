// SPDX-License-Identifier: Apache-2.0
// The durable events of each account in order, for the jobmanagers that follow them.  Of the newest the whole is
// here; of older ones, which are seldom wanted, what is large is in the store only.
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
  static constexpr size_t kWhole = 256;  // of an account
  static constexpr size_t kSmall = 256;  // bytes

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
    std::string bytes;  // the event; a message object would take several times as much; empty: cut
  };
  std::unordered_map<std::string, std::deque<Entry>> by_account_;
};

}  // namespace sekisho::qserver
