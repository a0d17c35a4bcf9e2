// SPDX-License-Identifier: Apache-2.0
#include "agent/output_window.h"

#include <gtest/gtest.h>

namespace sekisho::agent {
namespace {

using Chunk = OutputWindow::Chunk;

// Sends all that the window allows and says how much that was.
uint64_t SendAll(OutputWindow& window) {
  uint64_t sent = 0;
  while (const auto chunk = window.Next()) {
    window.Sent(chunk->size);
    sent += chunk->size;
  }
  return sent;
}

TEST(OutputWindow, SendsWhatIsThereOnce) {
  OutputWindow window;
  EXPECT_FALSE(window.Next());
  window.SetSize(5);

  EXPECT_EQ(window.Next(), (Chunk{0, 0, 5}));
  window.Sent(5);
  window.Taken(5);
  EXPECT_FALSE(window.Next());
  window.SetSize(8);
  EXPECT_EQ(window.Next(), (Chunk{5, 5, 3}));
}

TEST(OutputWindow, ASmallChunkWaitsForThoseBeforeIt) {
  OutputWindow window;
  window.SetSize(5);
  window.Sent(window.Next()->size);

  window.SetSize(5 + kChunkLeast - 1);
  EXPECT_FALSE(window.Next());
  window.SetSize(5 + kChunkLeast);
  EXPECT_EQ(window.Next()->size, kChunkLeast);
  window.Sent(kChunkLeast);
  window.SetSize(5 + kChunkLeast + 1);
  EXPECT_FALSE(window.Next());
  window.Taken(5 + kChunkLeast);
  EXPECT_EQ(window.Next()->size, 1U);
}

TEST(OutputWindow, WritingByteByByteNeverFillsTheWindowWithSmallChunks) {
  OutputWindow window;
  uint64_t written = 0;
  uint64_t taken = 0;
  int messages = 0;
  for (int round = 0; round < 1'000'000; ++round) {
    window.SetSize(++written);
    if (const auto chunk = window.Next()) {
      window.Sent(chunk->size);
      ++messages;
    }
    if (round % 1000 == 0) {  // a slow server
      window.Taken(taken = std::min(written, taken + 10'000));
    }
  }
  EXPECT_LE(messages, 1'000'000 / 1000 + 1'000'000 / int{kChunkLeast} + 1);
}

TEST(OutputWindow, NothingBeyondTheLimitIsSent) {
  OutputWindow window(100);
  window.SetSize(60);
  EXPECT_EQ(SendAll(window), 60U);
  window.Taken(60);
  EXPECT_FALSE(window.is_over_limit());

  window.SetSize(uint64_t{8} << 40);  // sparse
  EXPECT_TRUE(window.is_over_limit());
  EXPECT_EQ(window.size(), 100U);
  EXPECT_EQ(SendAll(window), 40U);
}

TEST(OutputWindow, EmptyingTheFileDoesNotRaiseTheLimit) {
  OutputWindow window(100);
  for (int i = 0; i < 5; ++i) {
    window.SetSize(60);
    SendAll(window);
    window.Taken(window.size());
    window.SetSize(0);
  }
  EXPECT_TRUE(window.is_over_limit());
  EXPECT_EQ(window.size(), 100U);
}

TEST(OutputWindow, StopsAtTheWindowUntilTheServerTakes) {
  OutputWindow window;
  window.SetSize(3 * kUnacknowledgedMost);

  EXPECT_EQ(window.Next()->size, kChunkMost);
  EXPECT_EQ(SendAll(window), kUnacknowledgedMost);
  window.Taken(kChunkLeast);
  EXPECT_EQ(SendAll(window), kChunkLeast);
  window.Taken(kUnacknowledgedMost);
  EXPECT_EQ(SendAll(window), kUnacknowledgedMost - kChunkLeast);
}

TEST(OutputWindow, ResumesWhereTheServerSays) {
  OutputWindow window;
  window.SetSize(100);
  SendAll(window);

  window.Resume(40);

  EXPECT_EQ(window.in_flight(), 0U);
  EXPECT_EQ(window.Next(), (Chunk{40, 40, 60}));
}

TEST(OutputWindow, IgnoresImpossibleAcknowledgements) {
  OutputWindow window;
  window.SetSize(10);
  SendAll(window);

  window.Taken(1000);
  EXPECT_EQ(window.in_flight(), 0U);
  window.Taken(3);
  EXPECT_EQ(window.in_flight(), 0U);
}

TEST(OutputWindow, EmptiedFileContinuesTheStream) {
  OutputWindow window;
  window.SetSize(10);
  SendAll(window);

  window.SetSize(0);
  window.SetSize(4);

  window.Taken(10);
  EXPECT_EQ(window.Next(), (Chunk{10, 0, 4}));
  EXPECT_EQ(window.size(), 14U);
  SendAll(window);
  window.Taken(12);
  EXPECT_EQ(window.taken(), 12U);
  EXPECT_EQ(window.Position(window.taken()), 2U);
  EXPECT_EQ(window.Position(9), 0U);
}

TEST(OutputWindow, ResumesBeforeWhatAnEmptiedFileHas) {
  OutputWindow window;
  window.SetSize(10);
  SendAll(window);
  window.SetSize(0);
  window.SetSize(4);

  window.Resume(3);

  EXPECT_EQ(window.begin(), 10U);
  EXPECT_EQ(window.Next(), (Chunk{3, 0, 11}));
}

TEST(OutputWindow, SurvivesAServerThatHasMoreThanTheFile) {
  OutputWindow window;
  window.SetSize(4);

  window.Resume(50);

  EXPECT_FALSE(window.Next());
  window.SetSize(6);
  EXPECT_EQ(window.Next(), (Chunk{50, 4, 2}));
}

}  // namespace
}  // namespace sekisho::agent
