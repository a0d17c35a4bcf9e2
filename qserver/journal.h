// SPDX-License-Identifier: Apache-2.0
// The durable events of each account in order, for the jobmanagers that follow them.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "proto/job.pb.h"

namespace sekisho::qserver {

class Journal {
 public:
  // `event` is on disk and has its sequence number, larger than all before.
  void Add(const std::string& account, const proto::JobEvent& event);

  // The first events of `account` after a position, at most `limit`.
  struct Found {
    proto::JobEvent event;
    bool is_cut = false;  // only its number and job: the rest is in the store
  };
  std::vector<Found> After(const std::string& account, uint64_t sequence, size_t limit) const;

  // The job has ended: what it was asked to do is seldom wanted again, and large.
  void Cut(const std::string& account, const std::string& job_id);

  void Forget(const std::string& account, const std::string& job_id);

 private:
  struct Entry {
    uint64_t sequence;
    std::string job_id;
    std::string bytes;  // the event; a message object would take several times as much; empty: cut
  };
  std::unordered_map<std::string, std::vector<Entry>> by_account_;
  std::unordered_map<std::string, uint64_t> large_;  // by job: the number of what is to be cut
};

}  // namespace sekisho::qserver
