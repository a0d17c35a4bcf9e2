// SPDX-License-Identifier: Apache-2.0
// See event_heap.h.
#include "deploy/wan/event_heap.h"

#include <algorithm>

namespace sekisho::wan {
namespace {

bool IsLater(const Event& a, const Event& b) {
  return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.order > b.order;
}

}  // namespace

void EventHeap::Push(int64_t time_ns, uint32_t packet) {
  events_.push_back({time_ns, pushed_++, packet});
  std::push_heap(events_.begin(), events_.end(), IsLater);
}

void EventHeap::Pop() {
  std::pop_heap(events_.begin(), events_.end(), IsLater);
  events_.pop_back();
}

}  // namespace sekisho::wan
