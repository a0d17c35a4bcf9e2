// SPDX-License-Identifier: Apache-2.0
// What is going to happen, earliest first; what happens at the same time, in the order of Push.
#pragma once

#include <cstdint>
#include <vector>

namespace sekisho::wan {

struct Event {
  int64_t time_ns;
  uint64_t order;
  uint32_t packet;
};

class EventHeap {
 public:
  void Push(int64_t time_ns, uint32_t packet);

  // Not empty:
  const Event& top() const { return events_.front(); }
  void Pop();

  bool empty() const { return events_.empty(); }

 private:
  std::vector<Event> events_;
  uint64_t pushed_ = 0;
};

}  // namespace sekisho::wan
