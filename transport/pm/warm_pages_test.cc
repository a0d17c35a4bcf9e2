// SPDX-License-Identifier: Apache-2.0
#include "transport/pm/warm_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kArea = 64 * kPage;

// For each page of an area and of two pages for each ring, whether it is there afterwards.
std::vector<bool> PagesThere(std::uint16_t nodes, std::uint16_t channels) {
  Config config;
  config.nodes = nodes;
  config.channels = channels;
  config.send_ring = config.receive_ring = 2 * kPage;
  const std::size_t rings = std::size_t{nodes} * channels * 4 * kPage;
  void* at = mmap(nullptr, kArea + rings, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  (void)madvise(at, kArea + rings, MADV_NOHUGEPAGE);
  const MutableBytes memory(static_cast<std::uint8_t*>(at), kArea + rings);

  WarmPages(config, memory.first(kArea), memory.subspan(kArea));

  std::vector<unsigned char> there(memory.size() / kPage);
  EXPECT_EQ(mincore(at, memory.size(), there.data()), 0);
  munmap(at, memory.size());
  std::vector<bool> result;
  for (const unsigned char one : there) result.push_back((one & 1) != 0);
  return result;
}

TEST(WarmPages, OfEachRingOnePageIsThere) {
  const std::vector<bool> there = PagesThere(4, 2);
  EXPECT_TRUE(there[0]) << "where the peers are";
  EXPECT_FALSE(there[kArea / kPage - 1]) << "records that a small job does not use";
  for (std::size_t page = kArea / kPage; page < there.size(); page += 2) {
    EXPECT_TRUE(there[page]) << page;
    EXPECT_FALSE(there[page + 1]) << page;
  }
}

TEST(WarmPages, OfManyStreamsNone) {
  const std::vector<bool> there = PagesThere(33, 2);
  EXPECT_EQ(std::count(there.begin(), there.end(), true), 0);
}

}  // namespace
}  // namespace sekisho::pm
