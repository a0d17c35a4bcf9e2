// SPDX-License-Identifier: Apache-2.0
#include "transport/pm/release_notes.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

struct Given {
  NodeId node;
  ChannelId channel;
  std::uint32_t session;
  std::uint64_t end;

  bool operator==(const Given&) const = default;
};

struct Listener {
  std::vector<Given> given;

  void GiveBack(NodeId node, ChannelId channel, std::uint32_t session, std::uint64_t end) {
    given.push_back({node, channel, session, end});
  }
};

TEST(ReleaseNotes, AreReadInTheirOrderFromWhereTheReaderWas) {
  ReleaseNotes notes;
  Listener listener;
  EXPECT_EQ(notes.Apply(listener, 0), 0u);
  notes.Add(65534, 255, 0xfedcba98, (1ull << 62) - 8);
  notes.Add(0, 0, 0, 8);
  const std::uint32_t read = notes.Apply(listener, 0);
  notes.Add(3, 1, 7, 16);
  EXPECT_EQ(notes.Apply(listener, read), 3u);
  const std::vector<Given> all = {
      {65534, 255, 0xfedcba98, (1ull << 62) - 8}, {0, 0, 0, 8}, {3, 1, 7, 16}};
  EXPECT_EQ(listener.given, all);
}

// A keeper does not know how many there were, a program that was started anew neither.
TEST(ReleaseNotes, AReaderWhoKnowsNothingGetsTheLatest) {
  for (const std::uint32_t made : {5u, ReleaseNotes::kNotes, 3 * ReleaseNotes::kNotes + 1}) {
    ReleaseNotes notes;
    for (std::uint32_t i = 0; i < made; ++i) notes.Add(1, 2, 3, 8 * i);
    Listener listener;
    EXPECT_EQ(notes.Apply(listener, notes.count() - ReleaseNotes::kNotes), made);
    ASSERT_EQ(listener.given.size(), std::min(made, ReleaseNotes::kNotes));
    EXPECT_EQ(listener.given.back().end, 8 * (made - 1));
    EXPECT_EQ(listener.given.front().end, 8 * (made - listener.given.size()));
  }
}

// A slot that is written while it is read belongs to nobody.
TEST(ReleaseNotes, NobodyReadsHalfOfOneAndHalfOfAnother) {
  static constexpr std::uint32_t kMade = 200'000;
  ReleaseNotes notes;
  struct Checker {
    std::uint64_t seen = 0, wrong = 0;
    void GiveBack(NodeId node, ChannelId channel, std::uint32_t session, std::uint64_t end) {
      ++seen;
      const std::uint64_t i = end / 8;
      wrong += node != i % 65536 || channel != i % 251 || session != i * 7 ? 1 : 0;
    }
  } checker;
  std::thread writer([&notes] {
    for (std::uint32_t i = 0; i < kMade; ++i) {
      notes.Add(static_cast<NodeId>(i % 65536), static_cast<ChannelId>(i % 251), i * 7, 8ull * i);
    }
  });
  while (notes.count() < kMade) {
    (void)notes.Apply(checker, notes.count() - ReleaseNotes::kNotes);
  }
  writer.join();
  EXPECT_EQ(checker.wrong, 0u) << "of " << checker.seen;
}

}  // namespace
}  // namespace sekisho::pm
