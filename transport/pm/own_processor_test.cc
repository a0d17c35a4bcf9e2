// SPDX-License-Identifier: Apache-2.0
#include "transport/pm/own_processor.h"

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

constexpr std::uint32_t kCalls = 32;

// Looks ten times as often as it is judged, and gives the processor away every so many calls.
bool IsAlone(OwnProcessor& processor, std::uint32_t every) {
  for (std::uint32_t calls = 0; calls < 10 * OwnProcessor::kLook; calls += kCalls) {
    for (std::uint32_t i = 0; i < kCalls; ++i) {
      if (every > 0 && (calls + i) % every == 0) processor.NoteGivenAway();
    }
    processor.NoteCalls(kCalls);
  }
  return processor.is_alone();
}

TEST(OwnProcessor, NothingIsSaidBeforeSomebodyLooked) {
  OwnProcessor processor;
  EXPECT_FALSE(processor.is_alone());
  processor.NoteCalls(OwnProcessor::kLook - 1);
  EXPECT_FALSE(processor.is_alone());
  processor.NoteCalls(1);
  EXPECT_TRUE(processor.is_alone());
}

TEST(OwnProcessor, WhoPollsIsAlone) {
  OwnProcessor processor;
  EXPECT_TRUE(IsAlone(processor, 0));
  EXPECT_TRUE(IsAlone(processor, 2 * OwnProcessor::kSeldom));
}

TEST(OwnProcessor, WhoSleepsOrYieldsToOthersIsNot) {
  OwnProcessor processor;
  EXPECT_FALSE(IsAlone(processor, 5));
  EXPECT_FALSE(IsAlone(processor, OwnProcessor::kSeldom / 2));
}

TEST(OwnProcessor, ItIsTheLastTimeThatCounts) {
  OwnProcessor processor;
  EXPECT_TRUE(IsAlone(processor, 0));
  EXPECT_FALSE(IsAlone(processor, 5));
  EXPECT_TRUE(IsAlone(processor, 0));
}

}  // namespace
}  // namespace sekisho::pm
