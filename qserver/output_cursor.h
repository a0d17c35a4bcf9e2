// SPDX-License-Identifier: Apache-2.0
// How far a reader of a job's output is, and which streams have more for him: a job of a thousand tasks has two
// thousand files, and at each wake-up one of them has grown.  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "proto/queue.pb.h"
#include "qserver/job.h"

namespace sekisho::qserver {

class OutputCursor {
 public:
  using Key = std::pair<int, int>;  // task, stream

  explicit OutputCursor(const proto::OutputRequest& request);

  // While the job runs, the streams that have grown beyond what was sent; once all is there, those that were
  // not read to their end since.
  std::vector<Key> Due(const Job& job, bool is_all_there) const;

  uint64_t offset(const Key& key) const;
  // So many bytes more may be sent; 0: its reader asks anew when he wants more.
  uint64_t room() const { return room_; }
  // So many bytes were sent; 0: there are no more in it.
  void Read(const Key& key, size_t bytes);

 private:
  const int task_;  // 0 = all, n = task n - 1 only
  uint64_t room_;
  std::map<Key, uint64_t> sent_;
  std::set<Key> empty_;
};

}  // namespace sekisho::qserver
