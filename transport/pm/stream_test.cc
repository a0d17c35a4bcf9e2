// SPDX-License-Identifier: Apache-2.0
// Rings, runs above gaps, packet number windows: at small and at very large counters.
#include "transport/pm/stream.h"

#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/receive_window.h"
#include "transport/pm/sim/network.h"

namespace sekisho::pm {
namespace {

struct SomeIntervals {
  explicit SomeIntervals(std::size_t count) : items(count) { pool.Init(std::span(items), head); }

  std::vector<Interval> items;
  PoolHead head;
  Pool<Interval> pool;
};

// Offsets near the ends of 32 and of 62 bits.
const std::uint64_t kStarts[] = {0, (1ull << 32) - 4096, (1ull << 62) - (1 << 20)};

TEST(Stream, BytesArriveWhateverTheirOrder) {
  for (const std::uint64_t start : kStarts) {
    sim::Random random(start + 3);
    std::vector<std::uint8_t> ring(4096);
    SomeIntervals some(200);
    Pool<Interval>& intervals = some.pool;
    ReceiveStream in;
    in.consumed = in.opened = in.contiguous = start;
    std::vector<std::uint8_t> text(4096);
    for (std::uint8_t& byte : text) byte = static_cast<std::uint8_t>(random.Next());

    std::uint64_t sum = 0, fresh;
    while (in.contiguous < start + text.size()) {
      const auto low = static_cast<std::size_t>(random.In(0, 4095));
      const auto length = static_cast<std::size_t>(
          random.In(1, static_cast<std::int64_t>(std::min<std::size_t>(200, 4096 - low))));
      ASSERT_EQ(in.Store(ring, intervals, start + low, Bytes(text).subspan(low, length), fresh),
                Stored::kYes);
      sum += fresh;
    }

    EXPECT_EQ(sum, text.size());
    const Pieces all = RingRead(ring, in.Place(start), text.size());
    std::vector<std::uint8_t> got(all.first.begin(), all.first.end());
    got.insert(got.end(), all.second.begin(), all.second.end());
    EXPECT_EQ(got, text);
    EXPECT_EQ(intervals.free_count(), intervals.size());
  }
}

// While a message is always behind in both rings, which so never begin anew, and while none is.
class StreamOfMessages : public testing::TestWithParam<bool> {};

TEST_P(StreamOfMessages, AppendAndOpenAgreeAtEveryOffset) {
  const bool one_is_behind = GetParam();
  for (const std::uint64_t start : kStarts) {
    sim::Random random(start + 4);
    std::vector<std::uint8_t> out_ring(4096), in_ring(4096);
    SomeIntervals some(4);
    Pool<Interval>& intervals = some.pool;
    SendStream out;
    out.written = out.cut = out.acked = start;
    out.message_limit = UINT64_MAX;
    ReceiveStream in;
    in.consumed = in.opened = in.contiguous = start;

    for (int i = 0; i < 300; ++i) {
      std::vector<std::uint8_t> message(
          static_cast<std::size_t>(random.In(0, (one_is_behind ? 2048 : 4096) - 8)));
      const std::uint64_t begin = out.written;
      for (std::uint8_t& byte : message) byte = static_cast<std::uint8_t>(random.Next());
      ASSERT_TRUE(out.Begin(out_ring, static_cast<std::uint32_t>(message.size()), 0));
      ASSERT_EQ(out.Append(out_ring, message), message.size());
      const Pieces wire = RingRead(out_ring, out.Place(begin), out.written - begin);
      std::uint64_t fresh;
      in.Store(in_ring, intervals, begin, wire.first, fresh);
      in.Store(in_ring, intervals, begin + wire.first.size(), wire.second, fresh);
      out.acked = out.cut = one_is_behind ? begin : out.written;

      ASSERT_EQ(in.Peek(in_ring), ReceiveStream::Look::kMessage);
      bool more = true;
      MessageKind kind;
      const Pieces got = in.Open(in_ring, kind, more);
      std::vector<std::uint8_t> bytes(got.first.begin(), got.first.end());
      bytes.insert(bytes.end(), got.second.begin(), got.second.end());
      EXPECT_FALSE(more);
      EXPECT_EQ(bytes, message);
      if (!one_is_behind || i > 0) in.Release(in_ring, in.opened);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stream, StreamOfMessages, testing::Bool());

TEST(Stream, AnEmptyRingIsFilledFromItsBeginning) {
  for (const std::uint64_t start : kStarts) {
    std::vector<std::uint8_t> out_ring(4096), in_ring(4096);
    SomeIntervals some(4);
    Pool<Interval>& intervals = some.pool;
    SendStream out;
    out.written = out.cut = out.acked = start;
    ReceiveStream in;
    in.consumed = in.opened = in.contiguous = start;
    const std::vector<std::uint8_t> text(120, 'x');  // 128 with its head
    const auto carry = [&](std::uint64_t from) {
      const Pieces wire = RingRead(out_ring, out.Place(from), out.written - from);
      std::uint64_t fresh;
      in.Store(in_ring, intervals, from, wire.first, fresh);
    };
    const auto used = [](const std::vector<std::uint8_t>& ring) {
      const auto last = std::find_if(ring.rbegin(), ring.rend(), [](auto byte) { return byte; });
      return ring.rend() - last;
    };
    bool more;
    MessageKind kind;

    for (int i = 0; i < 10; ++i) {
      const std::uint64_t begin = out.written;
      out.Put(out_ring, MessageKind::kProgram, text, {});
      carry(begin);
      out.acked = out.cut = out.written;
      (void)in.Open(in_ring, kind, more);
      in.Release(in_ring, in.opened);
    }
    EXPECT_EQ(used(out_ring), 128);
    EXPECT_EQ(used(in_ring), 128);

    // What is not acknowledged, or not given back, stays where it is.
    const std::uint64_t begin = out.written;
    const std::vector<std::uint8_t> second(120, 'y');
    out.Put(out_ring, MessageKind::kProgram, text, {});
    out.Put(out_ring, MessageKind::kProgram, second, {});
    carry(begin);
    (void)in.Open(in_ring, kind, more);
    EXPECT_EQ(used(out_ring), 256);
    EXPECT_EQ(used(in_ring), 256);
    const Pieces got = in.Open(in_ring, kind, more);
    EXPECT_EQ(std::vector<std::uint8_t>(got.first.begin(), got.first.end()), second);
  }
}

// A program that was left behind acts on a note when other bytes are in the ring already.
TEST(Stream, WhatIsGivenBackEndsWhereTheNoteSays) {
  std::vector<std::uint8_t> ring(4096);
  SomeIntervals some(4);
  Pool<Interval>& intervals = some.pool;
  ReceiveStream in;
  std::uint64_t fresh;
  const std::vector<std::uint8_t> two = {8, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                         8, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2};
  ASSERT_EQ(in.Store(ring, intervals, 0, two, fresh), Stored::kYes);
  bool more;
  MessageKind kind;
  (void)in.Open(ring, kind, more);
  (void)in.Open(ring, kind, more);

  ring[1] = 0xff;
  in.Release(ring, 16);
  EXPECT_EQ(in.consumed, 16u);
  ring[17] = 0xff;
  in.Release(ring, in.opened);
  EXPECT_EQ(in.consumed, 32u);
}

TEST(Stream, AHeadThatLiesIsSeen) {
  std::vector<std::uint8_t> ring(4096);
  SomeIntervals some(4);
  Pool<Interval>& intervals = some.pool;
  std::uint64_t fresh;
  for (const std::array<std::uint8_t, 8>& head : {std::array<std::uint8_t, 8>{1, 0, 0, 0, 2},
                                                  {1, 0, 0, 0, 1, 1},
                                                  {1, 0, 0, 0x40},
                                                  {0xff, 0xff, 0xff, 0xff}}) {
    ReceiveStream in;
    in.Store(ring, intervals, 0, head, fresh);
    EXPECT_EQ(in.Peek(ring), ReceiveStream::Look::kBroken);
  }
}

TEST(Stream, FullIntervalPoolRefusesInsteadOfForgetting) {
  std::vector<std::uint8_t> ring(4096);
  SomeIntervals some(4);
  Pool<Interval>& intervals = some.pool;
  ReceiveStream in;
  std::uint64_t fresh;
  const std::array<std::uint8_t, 1> byte = {1};

  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(in.Store(ring, intervals, 10 + 2 * i, byte, fresh), Stored::kYes);
  }
  EXPECT_EQ(in.Store(ring, intervals, 100, byte, fresh), Stored::kNoInterval);
  EXPECT_EQ(in.Store(ring, intervals, 11, byte, fresh), Stored::kYes) << "joins two runs";
}

TEST(ReceiveWindow, AgreesWithASet) {
  for (const std::uint64_t start :
       {std::uint64_t{1}, (std::uint64_t{1} << 32) - 1000, kNumberMax - 9000}) {
    sim::Random random(start);
    ReceiveWindow window;
    ReceiveWindow::Bits bits;
    bits.fill(0x5a5a5a5a5a5a5a5a);  // nobody initialises them
    std::vector<bool> seen(9000);
    if (start > 1) window.Mark(start - 1, bits);
    std::uint64_t largest = start - 1;
    for (int i = 0; i < 5000; ++i) {
      const std::uint64_t number =
          std::min(start + 8999,
                   largest + 1 + static_cast<std::uint64_t>(random.In(0, 3)) -
                       (random.Chance(0.3) ? std::min<std::uint64_t>(largest - start + 1, 40) : 0));
      if (number < start) continue;
      const bool duplicate = seen[number - start];
      ASSERT_EQ(window.Check(number, bits),
                duplicate ? ReceiveWindow::Verdict::kDuplicate : ReceiveWindow::Verdict::kNew);
      if (duplicate) continue;
      window.Mark(number, bits);
      seen[number - start] = true;
      largest = std::max(largest, number);
    }

    std::array<NumberRange, kAckRangesMax> ranges;
    const std::size_t count = window.Ranges(ranges, bits);
    ASSERT_GT(count, 0u);
    std::uint64_t number = largest;
    for (std::size_t i = 0; i < count; ++i) {
      for (; number > ranges[i].high; --number) EXPECT_FALSE(seen[number - start]);
      for (; number >= ranges[i].low && number >= start; --number)
        EXPECT_TRUE(seen[number - start]);
    }
  }
}

TEST(ReceiveWindow, ReportsNothingBelowTheFloor) {
  ReceiveWindow window;
  ReceiveWindow::Bits bits{};
  for (std::uint64_t number = 1; number <= 300; number += 2) window.Mark(number, bits);
  window.SetFloor(290);

  std::array<NumberRange, kAckRangesMax> ranges;
  const std::size_t count = window.Ranges(ranges, bits);

  EXPECT_EQ(count, 5u);  // 299, 297, 295, 293, 291
  EXPECT_EQ(window.Check(300 + ReceiveWindow::kSize, bits), ReceiveWindow::Verdict::kNew);
  window.Mark(299 + ReceiveWindow::kSize, bits);
  EXPECT_EQ(window.Check(299, bits), ReceiveWindow::Verdict::kTooOld);
}

}  // namespace
}  // namespace sekisho::pm
