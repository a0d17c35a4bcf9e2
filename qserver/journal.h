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
  std::vector<proto::JobEvent> After(const std::string& account, uint64_t sequence,
                                     size_t limit) const;

  void Forget(const std::string& account, const std::string& job_id);

 private:
  struct Entry {
    uint64_t sequence;
    std::string job_id;
    std::string bytes;  // the event; a message object would take several times as much
  };
  std::unordered_map<std::string, std::vector<Entry>> by_account_;
};

}  // namespace sekisho::qserver
