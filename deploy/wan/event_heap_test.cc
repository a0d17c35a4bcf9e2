// SPDX-License-Identifier: Apache-2.0
#include "deploy/wan/event_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace sekisho::wan {
namespace {

TEST(EventHeap, GivesEarliestFirstAndEqualTimesInOrder) {
  std::mt19937 random(1);
  EventHeap heap;
  std::vector<std::pair<int64_t, uint32_t>> expected;
  for (uint32_t i = 0; i < 1000; ++i) {
    const int64_t time = random() % 50;
    heap.Push(time, i);
    expected.emplace_back(time, i);
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });

  for (const auto& [time, packet] : expected) {
    ASSERT_FALSE(heap.empty());
    EXPECT_EQ(heap.top().time_ns, time);
    EXPECT_EQ(heap.top().packet, packet);
    heap.Pop();
  }
  EXPECT_TRUE(heap.empty());
}

}  // namespace
}  // namespace sekisho::wan
