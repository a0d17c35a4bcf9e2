// SPDX-License-Identifier: Apache-2.0
// A job stops as one, knows that nothing is under way, and goes on: in virtual time.
#include "transport/pm/gang.h"

#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "transport/pm/sim/cluster.h"

namespace sekisho::pm {
namespace {

constexpr std::uint32_t kNodes = 6;

GangView All(std::uint64_t asked, std::uint64_t joined, std::uint64_t reported) {
  GangView all;
  all.Add({0, asked, joined, reported, 0, 0});
  all.Add({0, 0, joined, reported, 0, 0});
  return all;
}

TEST(Gang, OneNodeStopsTheJobAndOneLetsItGo) {
  EXPECT_EQ(NextWave(0, All(0, 0, 0)), 0u);
  EXPECT_EQ(NextWave(0, All(1, 0, 0)), 1u);
  EXPECT_EQ(NextWave(1, All(1, 0, 0)), 1u) << "before all have flushed";
  EXPECT_EQ(NextWave(1, All(1, 0, 2)), 2u);
  EXPECT_EQ(NextWave(2, All(1, 0, 3)), 3u);
  EXPECT_EQ(NextWave(3, All(1, 0, 3)), 3u) << "until someone asks";
  EXPECT_EQ(NextWave(3, All(4, 0, 3)), 4u);
  EXPECT_EQ(NextWave(4, All(4, 0, 3)), 4u);
}

TEST(Gang, AnUnfinishedStopCanBeGivenUp) {
  EXPECT_EQ(NextWave(5, All(8, 0, 4)), 8u);
  EXPECT_EQ(NextWave(6, All(8, 0, 6)), 8u);
}

TEST(Gang, WhatAllMustJoinHappensOnlyThen) {
  GangView all;
  all.Add({0, 0, 1, 0, 0, 0});
  all.Add({0, 0, 0, 0, 0, 0});
  EXPECT_EQ(NextWave(0, all), 0u);
  EXPECT_EQ(NextWave(0, All(0, 1, 0)), 1u);
  EXPECT_EQ(NextWave(3, All(0, 3, 3)), 3u);
  EXPECT_EQ(NextWave(3, All(0, 4, 3)), 4u);
}

TEST(Gang, NobodyWantsMoreThanTheNextJobThatRuns) {
  constexpr std::uint64_t kLargest = (std::uint64_t{1} << 62) - 1;
  EXPECT_EQ(Bounded({5, kLargest, kLargest, 0, 0, 0}, 0).asked, 8u);
  EXPECT_EQ(Bounded({5, 8, kLargest, 0, 0, 0}, 9).joined, 12u);
  EXPECT_EQ(Bounded({5, 8, 6, 0, 0, 0}, 0).asked, 8u);
}

// Everyone sends to everyone all the time, as far as it may.
class JobTest : public ::testing::Test {
 protected:
  JobTest() {
    for (sim::Link& link : cluster_.network().links()) link.loss = 0.02;
    cluster_.on_turn = [this](std::uint32_t node) { Turn(node); };
    for (std::uint32_t node = 0; node < kNodes; ++node) Turn(node), cluster_.Pump(node);
  }

  void Turn(std::uint32_t node) {
    Endpoint& own = cluster_[node];
    own.NoteProgram(silent_);
    if (own.paused()) return;
    Message message;
    while (node != deaf_ && own.Receive(message)) {
      ++received_[node];
      (void)own.Release(message.source, message.channel, cluster_.now());
    }
    const std::vector<std::uint8_t> text(3000, 'x');
    for (std::uint32_t to = 0; to < kNodes && !silent_; ++to) {
      if (to == node || own.Send(static_cast<NodeId>(to), 0, text, cluster_.now())) continue;
      ++sent_[node];
    }
  }

  bool Are(GangPhase phase) {
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      if (PhaseOf(cluster_[node].gang().wave) != phase) return false;
    }
    return true;
  }

  bool Drained() {
    for (NodeId from = 0; from < kNodes; ++from) {
      for (NodeId to = 0; to < kNodes; ++to) {
        if (from != to && !cluster_[from].Drained(to)) return false;
      }
    }
    return true;
  }

  void Ask(std::uint32_t node, bool stop) {
    cluster_[node].AskGang(stop, cluster_.now());
    cluster_.Pump(node);
  }

  void CutOff(std::uint32_t node, bool off) {
    for (std::uint32_t other = 0; other < kNodes; ++other) {
      cluster_.network().link(node, other).loss = off ? 1 : 0;
      cluster_.network().link(other, node).loss = off ? 1 : 0;
    }
  }

  // All that was said was acknowledged.
  bool Silent(std::uint32_t from, NodeId to) {
    return cluster_[from].session(to).in_flight_packets == 0;
  }

  // A genuine packet of `from` with any content.
  void Forge(NodeId from, NodeId to, const GangNote& note, bool close) {
    std::array<std::uint8_t, 200> packet{};
    FrameWriter frames(MutableBytes(packet).subspan(kHeaderSize, 150));
    ASSERT_TRUE(frames.Gang(note));
    ASSERT_TRUE(!close || frames.One(FrameKind::kClose, 0));
    const Config& config = cluster_[from].config();
    const Session& there = cluster_[from].session(to);
    WriteHeader({Kind::kData, 0, config.context, from, to, there.next_number + 1000,
                 static_cast<std::uint16_t>(frames.size())},
                std::span<std::uint8_t, kHeaderSize>(packet.data(), kHeaderSize));
    const PayloadKey payload_key = MakePayloadKey(config.key);
    const std::size_t end =
        Seal(there.session_send, nullptr, &payload_key, packet, kHeaderSize + frames.size());
    cluster_.Deliver(from, to, {packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(end)});
  }

  std::uint64_t Received() const {
    std::uint64_t sum = 0;
    for (const auto& [node, count] : received_) sum += count;
    return sum;
  }

  sim::Cluster cluster_{kNodes};
  std::map<std::uint32_t, std::uint64_t> sent_, received_;
  bool silent_ = false;
  std::uint32_t deaf_ = kNodes;  // a node that reads nothing
};

// Sessions that begin in a job that was stopped before do so with a note of it: that is no wish to
// hear more.
TEST_F(JobTest, NoMessageOfAStopGoesFromAllToAll) {
  for (std::uint32_t from = 1; from < kNodes; ++from) {
    for (std::uint32_t to = 1; to < kNodes; ++to) {
      cluster_.network().link(from, to).delay = 5 * kMillisecond;
    }
  }
  Ask(0, true);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); }));
  Ask(0, false);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Received() > 500; }));
  for (sim::Link& link : cluster_.network().links()) link.loss = 0;
  silent_ = true;
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));
  (void)cluster_.Run(100 * kMillisecond, [] { return false; });  // late acknowledgements
  // Between nodes that do not lead.
  const auto packets = [&] {
    std::vector<std::uint64_t> numbers;
    for (std::uint32_t from = 1; from < kNodes; ++from) {
      for (std::uint32_t to = 1; to < kNodes; ++to) {
        if (to != from) numbers.push_back(cluster_[from].session(to).next_number);
      }
    }
    return numbers;
  };
  const auto before = packets();

  Ask(3, true);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); }));
  Ask(4, false);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kRunning); }));

  EXPECT_EQ(packets(), before);
}

TEST_F(JobTest, NothingIsUnderWayWhenItHasStopped) {
  for (std::uint32_t round = 0; round < 20; ++round) {
    ASSERT_TRUE(
        cluster_.Run(kSecond, [&, before = Received()] { return Received() > before + 100; }));

    Ask(round % kNodes, true);
    ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); })) << round;

    for (NodeId from = 0; from < kNodes; ++from) {
      for (NodeId to = 0; to < kNodes; ++to) {
        if (from == to) continue;
        const SendStream& out = cluster_[from].send_streams(to)[0];
        EXPECT_EQ(out.acked, out.cut);
        EXPECT_EQ(cluster_[to].receive_stream(from, 0).contiguous, out.cut);
      }
    }
    EXPECT_EQ(cluster_[0].gang().idle, 0u);
    const std::uint64_t stopped = Received();
    cluster_.Run(50 * kMillisecond);
    EXPECT_EQ(Received(), stopped);
    Ask((round + 3) % kNodes, false);
    ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kRunning); })) << round;
  }
}

TEST_F(JobTest, AJobThatOnlyWaitsIsSeenToBeDead) {
  silent_ = true;
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));

  Ask(2, true);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); }));

  for (NodeId node = 0; node < kNodes; ++node) EXPECT_EQ(cluster_[node].gang().idle, kNodes);
}

TEST_F(JobTest, ANodeThatWasStartedAnewLearnsThatTheJobIsStopped) {
  silent_ = true;
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));
  Ask(1, true);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); }));

  cluster_.Restart(0);  // who led it
  cluster_.SendText(0, 1, 0, 100);

  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); }));
  const std::uint64_t before = Received();
  Ask(4, false);
  ASSERT_TRUE(cluster_.Run(10 * kSecond, [&] { return Are(GangPhase::kRunning); }));
  EXPECT_TRUE(cluster_.Run(kSecond, [&] { return Received() > before; }));
}

TEST_F(JobTest, WithoutItsLowestNodeTheNextOneLeads) {
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Received() > 500; }));
  for (NodeId node = 1; node < kNodes; ++node) {
    (void)cluster_[0].Close(node, cluster_.now());
    (void)cluster_[node].Close(0, cluster_.now());
  }

  Ask(3, true);
  const auto stopped = [&] {
    for (std::uint32_t node = 1; node < kNodes; ++node) {
      if (PhaseOf(cluster_[node].gang().wave) != GangPhase::kSettled) return false;
    }
    return true;
  };

  EXPECT_TRUE(cluster_.Run(kSecond, stopped));
  EXPECT_EQ(cluster_[4].gang().gone, 1u);
}

TEST_F(JobTest, ANodeThatIsRestoredLongAfterAnotherIsNotGone) {
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Received() > 500; }));
  Ask(2, true);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); }));
  const std::vector<std::uint8_t> saved[2] = {cluster_.Save(1), cluster_.Save(3)};
  CutOff(1, true), CutOff(3, true);
  cluster_.Run(kSecond);

  CutOff(1, false), CutOff(3, true);
  cluster_.Restore(1, saved[0]);
  cluster_.Run(60 * kSecond);
  CutOff(3, false);
  cluster_.Restore(3, saved[1]);
  ASSERT_TRUE(cluster_.Run(10 * kSecond, [&] {
    return cluster_[1].peer_state(3) == PeerState::kUp &&
           cluster_[3].peer_state(1) == PeerState::kUp;
  }));

  const std::uint64_t before = cluster_[3].receive_stream(1, 0).contiguous;
  Ask(0, false);
  EXPECT_TRUE(cluster_.Run(10 * kSecond, [&] { return Are(GangPhase::kRunning); }));
  EXPECT_TRUE(cluster_.Run(
      kSecond, [&] { return cluster_[3].receive_stream(1, 0).contiguous > before + 30'000; }));
}

TEST_F(JobTest, AStoppedJobWhoseLeaderDiedGoesOn) {
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Received() > 500; }));
  Ask(2, true);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); }));
  CutOff(0, true);
  cluster_.Run(kSecond);

  Ask(4, false);

  EXPECT_TRUE(cluster_.Run(60 * kSecond, [&] {
    for (std::uint32_t node = 1; node < kNodes; ++node) {
      if (cluster_[node].paused()) return false;
    }
    return true;
  }));
}

TEST_F(JobTest, AStopThatWasGivenUpBeforeItsLeaderHeardOfItStopsNobody) {
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Received() > 500; }));
  silent_ = true;
  CutOff(0, true);
  Ask(3, true);
  cluster_.Run(20 * kMillisecond);
  ASSERT_TRUE(Are(GangPhase::kRunning));

  Ask(3, false);
  CutOff(0, false);

  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return cluster_[3].gang().wave == 4; }));
  EXPECT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kRunning); }));
  silent_ = false;
  for (std::uint32_t node = 0; node < kNodes; ++node) Turn(node), cluster_.Pump(node);
  EXPECT_TRUE(
      cluster_.Run(kSecond, [&, before = Received()] { return Received() > before + 500; }));
}

// Where a node still holds messages of one that was started anew, two can lead: the new one, and
// who does not let it in.  The job may be let go before the second says that it is flushed; it is
// too late for it to settle.
TEST_F(JobTest, OfTwoLeadersNoneSettlesAJobThatWasLetGo) {
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Received() > 500; }));
  Ask(1, true);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); }));
  Ask(1, false);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kRunning); }));
  for (sim::Link& link : cluster_.network().links()) link.loss = 0;
  silent_ = true;
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));
  deaf_ = 1;
  cluster_.SendText(0, 1, 0, 100);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));
  cluster_.Restart(0);
  for (std::uint32_t to = 1; to < kNodes; ++to) cluster_.SendText(0, to, 0, 100);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] {
    return cluster_[1].peer(0).is_replaced && cluster_[0].peer(5).confirmed &&
           cluster_[0].gang().wave == 4;
  }));

  // What the others say to node 1 while the job stops arrives, but of node 3 only later.
  cluster_.network().link(3, 1).delay = 20 * kMillisecond;
  Ask(0, true);
  ASSERT_TRUE(cluster_.Run(10 * kMillisecond, [&] { return cluster_[1].gang(5).reported == 6; }));
  for (const std::uint32_t from : {2, 4, 5}) cluster_.network().link(from, 1).loss = 1;
  Ask(0, false);
  std::uint64_t last = 0;
  bool flushed = false, settled = false;
  EXPECT_TRUE(cluster_.Run(kSecond, [&] {
    last = cluster_[1].gang().wave;
    flushed = flushed || PhaseOf(last) == GangPhase::kFlushed;
    settled = settled || PhaseOf(last) == GangPhase::kSettled;
    return last == 8;
  }));

  EXPECT_TRUE(flushed) << "else this shows nothing";
  EXPECT_FALSE(settled);
  EXPECT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kRunning); }));
}

// A node that was started anew has not flushed with the others, if its leader did not let it in
// before.
TEST_F(JobTest, WhoComesToAFlushedJobFlushesBeforeItSettles) {
  for (sim::Link& link : cluster_.network().links()) link.loss = 0;
  silent_ = true;
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));
  deaf_ = 0;
  cluster_.SendText(1, 0, 0, 100);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));
  cluster_.Restart(1);
  cluster_.SendText(1, 0, 0, 100);
  cluster_.SendText(1, 3, 0, 100);
  ASSERT_TRUE(cluster_.Run(
      kSecond, [&] { return cluster_[0].peer(1).is_replaced && cluster_[1].Drained(3); }));
  CutOff(1, true);
  cluster_.SendText(1, 3, 0, 100);  // under way
  deaf_ = kNodes, Turn(0), cluster_.Pump(0);

  Ask(2, true);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return cluster_[0].gang().wave == 2; }));
  cluster_.network().link(5, 0).loss = 1;  // settles nothing yet
  cluster_.network().link(0, 1).loss = cluster_.network().link(1, 0).loss = 0;
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return cluster_[0].gang(1).wave == 2; }));
  cluster_.network().link(5, 0).loss = 0;
  EXPECT_FALSE(cluster_.Run(100 * kMillisecond, [&] { return cluster_[0].gang().wave == 3; }));

  CutOff(1, false);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); }));
  EXPECT_EQ(cluster_[3].receive_stream(1, 0).contiguous, 2 * Padded(8 + 100));
}

// Its leader, started anew, must wait for that; the one that it follows instead was started anew,
// too, and does not know of it.
TEST_F(JobTest, AStoppedNodeWithUnreadMessagesNoticesThatItsLeadersWereStartedAnew) {
  for (sim::Link& link : cluster_.network().links()) link.loss = 0;
  silent_ = true;
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));
  deaf_ = 3;
  cluster_.SendText(0, 3, 0, 100);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));
  Ask(2, true);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); }));

  cluster_.Restart(0);
  for (std::uint32_t to = 1; to < kNodes; ++to) cluster_.SendText(0, to, 0, 100);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] {
    return cluster_[3].peer(0).is_replaced && cluster_[1].gang(3).wave == 3 &&
           PhaseOf(cluster_[0].gang().wave) == GangPhase::kSettled;
  }));
  cluster_.Run(10 * kMillisecond);
  cluster_.Restart(1);
  Ask(2, false);

  deaf_ = kNodes;
  EXPECT_TRUE(cluster_.Run(10 * kSecond, [&] { return Are(GangPhase::kRunning); }));
}

// It acknowledges what it was asked, and dies before anyone hears what it makes of it; its next
// life has nothing to say.
TEST_F(JobTest, AStopIsHeardOfThoughItsLeaderWasStartedAnew) {
  for (sim::Link& link : cluster_.network().links()) link.loss = 0;
  silent_ = true;
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));
  cluster_.on_datagram = [](std::uint32_t from, std::uint32_t, Bytes) { return from != 0; };
  Ask(3, true);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return cluster_[0].gang().wave == 1; }));
  cluster_.on_datagram = [](std::uint32_t from, std::uint32_t to, Bytes) {
    return from != 0 || to == 3;
  };
  cluster_.SendText(3, 0, 0, 100);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Silent(3, 0); }));
  ASSERT_EQ(cluster_[3].gang().wave, 0u);

  cluster_.Restart(0);
  cluster_.on_datagram = nullptr;

  EXPECT_TRUE(cluster_.Run(10 * kSecond, [&] { return Are(GangPhase::kSettled); }));
}

TEST_F(JobTest, AStopDoesNotWaitForTheReportOfANodeThatWasStartedAnew) {
  for (sim::Link& link : cluster_.network().links()) link.loss = 0;
  silent_ = true;
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));
  bool is_first = true;
  cluster_.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes) {
    return from != 5 || !std::exchange(is_first, false);
  };
  Ask(3, true);
  ASSERT_TRUE(
      cluster_.Run(kSecond, [&] { return cluster_[5].gang().reported == 2 && Silent(0, 5); }));
  ASSERT_EQ(cluster_[0].gang(5).reported, 0u);

  cluster_.Restart(5);

  EXPECT_TRUE(cluster_.Run(10 * kSecond, [&] { return Are(GangPhase::kSettled); }));
}

// What every report and every wave would wake a process for.
TEST_F(JobTest, WavesAndReportsAreNotAcknowledgedApart) {
  for (sim::Link& link : cluster_.network().links()) link.loss = 0;
  silent_ = true;
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Drained(); }));
  cluster_.Run(kCalm + 10 * kMillisecond);
  std::uint64_t datagrams = 0;
  cluster_.on_datagram = [&](std::uint32_t, std::uint32_t, Bytes) { return ++datagrams > 0; };
  Ask(0, true);
  ASSERT_TRUE(cluster_.Run(kUnhurried / 2, [&] { return Are(GangPhase::kSettled); }));
  EXPECT_EQ(datagrams, 3u * (kNodes - 1) + 2u * (kNodes - 1));  // waves, and reports on two
  cluster_.Run(10 * kMillisecond);
  EXPECT_EQ(datagrams, 6u * (kNodes - 1));  // and acknowledgements of the last
}

// One frame of a member must not keep a node busy for ever.
TEST_F(JobTest, AMemberThatAsksForTheLargestWaveHoldsNobodyUp) {
  constexpr std::uint64_t kLargest = (std::uint64_t{1} << 62) - 1;
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Received() > 500; }));

  Forge(5, 0, {0, kLargest, kLargest, kLargest, 0, 0}, false);         // who leads
  Forge(0, 1, {0, kLargest, kLargest, kLargest, 0, 0}, true);          // who leads from now on
  Forge(5, 3, {kLargest, kLargest, kLargest, kLargest, 0, 0}, false);  // no such wave

  EXPECT_LE(cluster_[0].gang().wave, 4u);
  EXPECT_LE(cluster_[1].gang().wave, 4u);
  EXPECT_EQ(cluster_[3].gang().wave, 0u);
  EXPECT_EQ(cluster_[3].counters().bad_frames, 1u);
  EXPECT_TRUE(
      cluster_.Run(kSecond, [&, before = Received()] { return Received() > before + 500; }));
}

TEST_F(JobTest, ACheckpointWaitsForAllNodesAndSoDoesItsEnd) {
  silent_ = true;
  for (std::uint32_t node = 0; node + 1 < kNodes; ++node) {
    cluster_[node].JoinGang(true, cluster_.now());
    cluster_.Pump(node);
  }
  cluster_.Run(20 * kMillisecond);
  EXPECT_TRUE(Are(GangPhase::kRunning));
  cluster_[kNodes - 1].JoinGang(true, cluster_.now());
  cluster_.Pump(kNodes - 1);
  ASSERT_TRUE(cluster_.Run(kSecond, [&] { return Are(GangPhase::kSettled); }));

  for (std::uint32_t node = 0; node < kNodes; ++node) {
    EXPECT_TRUE(Are(GangPhase::kSettled));
    cluster_[node].JoinGang(false, cluster_.now());
    cluster_.Pump(node);
    cluster_.Run(20 * kMillisecond);
  }
  EXPECT_TRUE(Are(GangPhase::kRunning));
}

// A program that polls for the end of a checkpoint may look just after the job went on.
TEST_F(JobTest, WhoeverWantsTheJobToGoOnDoesNotJoinTheNextStop) {
  silent_ = true;
  cluster_[0].JoinGang(false, cluster_.now());
  for (std::uint32_t node = 1; node < kNodes; ++node) {
    cluster_[node].JoinGang(true, cluster_.now());
    cluster_.Pump(node);
  }
  cluster_.Run(100 * kMillisecond);

  EXPECT_TRUE(Are(GangPhase::kRunning));
}

}  // namespace
}  // namespace sekisho::pm
