// SPDX-License-Identifier: Apache-2.0
#include "rankmap/trace/collectives.h"

#include <functional>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

// Bytes and messages that each rank sends to each other in one operation.
struct Traffic {
  explicit Traffic(int ranks) : size(ranks), bytes(ranks, std::vector<uint64_t>(ranks)), messages(bytes) {}

  uint64_t total() const {
    uint64_t sum = 0;
    for (const auto& row : bytes) {
      sum = std::accumulate(row.begin(), row.end(), sum);
    }
    return sum;
  }
  uint64_t received(int rank) const {
    uint64_t sum = 0;
    for (int from = 0; from < size; ++from) {
      sum += bytes[from][rank];
    }
    return sum;
  }
  uint64_t sent(int rank) const { return std::accumulate(bytes[rank].begin(), bytes[rank].end(), uint64_t{0}); }
  uint64_t messages_to(int rank) const {
    uint64_t sum = 0;
    for (int from = 0; from < size; ++from) {
      sum += messages[from][rank];
    }
    return sum;
  }

  int size;
  std::vector<std::vector<uint64_t>> bytes, messages;
};

Traffic Of(int size, const std::function<void(const traffic_caller*)>& operation) {
  Traffic traffic(size);
  for (int rank = 0; rank < size; ++rank) {
    std::pair<Traffic*, int> self(&traffic, rank);
    const traffic_caller caller = {rank, size,
                                   [](void* context, int peer, uint64_t bytes) {
                                     auto& [all, from] = *static_cast<std::pair<Traffic*, int>*>(context);
                                     ASSERT_GE(peer, 0);
                                     ASSERT_LT(peer, all->size);
                                     ASSERT_NE(peer, from) << "to itself";
                                     all->bytes[from][peer] += bytes;
                                     all->messages[from][peer] += 1;
                                   },
                                   &self};
    operation(&caller);
  }
  return traffic;
}

class Collectives : public ::testing::TestWithParam<int> {
 protected:
  const int size_ = GetParam();
  const uint64_t others_ = size_ - 1;
};

TEST_P(Collectives, ABroadcastReachesEveryRankOnce) {
  for (const uint64_t bytes : {4u, 100u, 600u, 5000u, 20'000u, 60'000u, 200'000u}) {  // by every tree
    for (int root = 0; root < size_; ++root) {
      const Traffic traffic = Of(size_, [&](auto* caller) { traffic_bcast(caller, root, bytes); });
      for (int rank = 0; rank < size_; ++rank) {
        EXPECT_EQ(traffic.received(rank), rank == root ? 0u : bytes) << rank << " of root " << root;
      }
    }
  }
}

TEST_P(Collectives, AReductionTakesEveryRanksPartOnce) {
  for (const uint64_t bytes : {4u, 12u, 20u, 100u, 6000u, 100'000u}) {
    for (int root = 0; root < size_; ++root) {
      const Traffic traffic = Of(size_, [&](auto* caller) { traffic_reduce(caller, root, bytes); });
      for (int rank = 0; rank < size_; ++rank) {
        EXPECT_EQ(traffic.sent(rank), rank == root ? 0u : bytes);
      }
    }
  }
}

TEST_P(Collectives, GatherAndScatterMoveEveryBlockToOrFromTheRoot) {
  for (const uint64_t block : {100u, 5000u}) {  // by a tree where there are many ranks, and straight
    for (int root = 0; root < size_; ++root) {
      const Traffic gathered = Of(size_, [&](auto* caller) { traffic_gather(caller, root, block); });
      EXPECT_EQ(gathered.received(root), others_ * block);
      const Traffic scattered = Of(size_, [&](auto* caller) { traffic_scatter(caller, root, block); });
      EXPECT_EQ(scattered.sent(root), others_ * block);
      for (int rank = 0; rank < size_; ++rank) {  // what passes a rank is its own block and those behind it
        EXPECT_EQ(gathered.sent(rank), rank == root ? 0u : gathered.received(rank) + block);
        EXPECT_EQ(scattered.received(rank), rank == root ? 0u : scattered.sent(rank) + block);
      }
    }
  }
}

TEST_P(Collectives, AllreduceByDoublingGivesWhoTakesPartTheResult) {
  const Traffic traffic = Of(size_, [&](auto* caller) { traffic_allreduce(caller, 100); });
  for (int rank = 0; rank < size_; ++rank) {
    EXPECT_EQ(traffic.messages_to(rank) > 0, size_ > 1) << rank;
  }
  int power = 1;
  int rounds = 0;
  for (; power * 2 <= size_; power *= 2) {
    ++rounds;
  }
  EXPECT_EQ(traffic.total(), 100u * (power * rounds + 2 * (size_ - power)));
}

// A ring, or halves; who is beyond a power of two halves with a neighbour first and gets the whole at the end.
TEST_P(Collectives, AllreduceOfManyBytesSendsEachByteTwice) {
  constexpr uint64_t kBytes = 128'000;
  const Traffic traffic = Of(size_, [&](auto* caller) { traffic_allreduce(caller, kBytes); });
  uint64_t power = 1;
  while (power * 2 <= static_cast<uint64_t>(size_)) {
    power *= 2;
  }
  const uint64_t extra = size_ < 4 ? 0 : size_ - power;
  EXPECT_EQ(traffic.total(), size_ < 4 ? 2 * others_ * kBytes : 2 * (power - 1) * kBytes + extra * kBytes * 5 / 2);
}

TEST_P(Collectives, AllgatherGivesEveryRankEveryOthersBlock) {
  for (const uint64_t block : {16u, 60'000u}) {
    const Traffic traffic = Of(size_, [&](auto* caller) { traffic_allgather(caller, block); });
    for (int rank = 0; rank < size_; ++rank) {
      EXPECT_EQ(traffic.received(rank), others_ * block);
    }
  }
  for (const uint64_t first : {2000u, 5000u, 9000u, 40'000u, 300'000u}) {
    std::vector<uint64_t> blocks(size_);
    std::iota(blocks.begin(), blocks.end(), first);
    const Traffic traffic = Of(size_, [&](auto* caller) { traffic_allgatherv(caller, blocks.data()); });
    const uint64_t all = std::accumulate(blocks.begin(), blocks.end(), uint64_t{0});
    for (int rank = 0; rank < size_; ++rank) {
      EXPECT_EQ(traffic.received(rank), all - blocks[rank]) << first;
    }
  }
}

TEST_P(Collectives, AlltoallGivesEachPairItsBlock) {
  const Traffic traffic = Of(size_, [](auto* caller) { traffic_alltoall(caller, 1000); });
  for (int from = 0; from < size_; ++from) {
    for (int to = 0; to < size_; ++to) {
      EXPECT_EQ(traffic.bytes[from][to], from == to ? 0u : 1000u);
    }
  }
}

TEST_P(Collectives, ReduceScatterSendsEveryBlockToEveryOtherOnce) {
  uint64_t power = 1;
  while (power * 2 <= static_cast<uint64_t>(size_)) {
    power *= 2;
  }
  const uint64_t extra = size_ < 4 ? 0 : size_ - power;  // their own block comes back from a neighbour
  const std::vector<uint64_t> blocks(size_, 50);
  const Traffic each = Of(size_, [&](auto* caller) { traffic_reduce_scatter(caller, blocks.data()); });
  EXPECT_EQ(each.total(), 50u * size_ * others_ + extra * 50u);
  const Traffic block = Of(size_, [](auto* caller) { traffic_reduce_scatter_block(caller, 1000); });
  EXPECT_GE(block.total(), others_ * 1000 * size_);
}

TEST_P(Collectives, ScanGoesFromRankToRankAndABarrierCarriesNothing) {
  const Traffic scan = Of(size_, [](auto* caller) { traffic_scan(caller, 10); });
  EXPECT_EQ(scan.total(), others_ * 10);
  const Traffic barrier = Of(size_, [](auto* caller) { traffic_barrier(caller); });
  EXPECT_EQ(barrier.total(), 0u);
  for (int rank = 0; rank < size_; ++rank) {
    EXPECT_EQ(barrier.messages_to(rank) > 0, size_ > 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives, testing::Values(1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 31));

TEST(Collectives, SmallBlocksOfManyRanksGoByBrucksAlgorithm) {
  const Traffic traffic = Of(16, [](auto* caller) { traffic_alltoall(caller, 8); });
  EXPECT_EQ(traffic.total(), 16u * 4 * 8 * 8);  // each of four rounds half of the blocks
  EXPECT_EQ(traffic.messages_to(0), 4u);
}

TEST(Collectives, WhoHasAPartnerPassesOnWhatItGot) {
  const Traffic five = Of(5, [](auto* caller) { traffic_reduce_scatter_block(caller, 16); });
  EXPECT_EQ(five.total(), 45u * 16);         // 16 of four ranks, 12, 1 and 4 between 0 and 4; then 4 to each of 1, 2 and 3
  EXPECT_EQ(five.bytes[2][3], 4u * 16 * 2);  // at first, and at last
}

// Between powers of two, blocks that are not one's own at the end are handed on.
TEST(Collectives, AButterflyHandsOnWhatItsBitsMirror) {
  const Traffic five = Of(5, [](auto* caller) { traffic_reduce_scatter_block(caller, 10'000); });
  EXPECT_EQ(five.total(), 23u * 10'000);  // 5 to begin with, 10 and 5 in two rounds; one for rank 0, two that change places
  EXPECT_EQ(five.bytes[2][3], 10'000u);
  const Traffic eight = Of(8, [](auto* caller) { traffic_reduce_scatter_block(caller, 64); });
  EXPECT_EQ(eight.total(), 8u * 7 * 64);
  EXPECT_EQ(eight.bytes[0][1], 4u * 64);
}

}  // namespace
