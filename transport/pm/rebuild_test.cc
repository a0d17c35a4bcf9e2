// SPDX-License-Identifier: Apache-2.0
// What a keeper makes of the state of a program that died, or was stopped and goes on later where
// it was: docs/protocol/9-pm.md, "Seizure".
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/guarded_node.h"

namespace sekisho::pm {
namespace {

// Two nodes whose programs are stopped all the time and go on later, where they were.
class Rebuild : public testing::Test {
 protected:
  struct Note {
    std::uint32_t session;
    std::uint64_t end;
  };
  struct Side {
    explicit Side(NodeId id) : node(SmallConfig(id)), end(&node.endpoint) {}

    MutableBytes area(bool spare) const { return spare ? node.spare.bytes() : node.area.bytes(); }

    Node node;
    Endpoint* end;
    bool in_spare = false;
    std::uint32_t sent = 0, got = 0;
    std::vector<Note> notes;             // of what was given back
    std::vector<std::uint8_t> datagram;  // taken from the socket, but nobody has acted on it
    // The program that was left behind in the old area, in front of this datagram.
    Endpoint old;
    std::vector<Note> old_notes;
    int steps = 0;  // until it goes on; 0: there is none
  };

  static NodeId Other(std::size_t side) { return static_cast<NodeId>(1 - side); }
  static Address AddressOf(std::size_t side) { return {{}, static_cast<std::uint16_t>(2 - side)}; }

  static void GiveBack(Endpoint& end, std::size_t side, const std::vector<Note>& notes) {
    for (const Note& note : notes) end.GiveBack(Other(side), 0, note.session, note.end);
  }

  // The program goes on: acts on the notes, stores what it has taken, and learns that it lost the
  // word.
  static void GoOn(Side& at, std::size_t side, Nanos now) {
    GiveBack(at.old, side, at.old_notes);
    at.old.OnDatagram(AddressOf(side), at.datagram, false, now);
    at.datagram.clear();
  }

  static void Deliver(Side& at, std::size_t side, MutableBytes datagram, bool lost, Nanos now) {
    if (lost && at.steps == 0) at.datagram.assign(datagram.begin(), datagram.end());
    if (lost) return;
    GiveBack(*at.end, side, at.notes);
    at.notes.clear();
    at.end->OnDatagram(AddressOf(side), datagram, false, now);
  }

  static void Read(Side& at, std::size_t side, const Message& message, bool by_note, Nanos now) {
    std::vector<std::uint8_t> bytes(message.bytes.first.begin(), message.bytes.first.end());
    bytes.insert(bytes.end(), message.bytes.second.begin(), message.bytes.second.end());
    std::uint32_t number;
    std::memcpy(&number, bytes.data(), 4);
    ASSERT_EQ(number, at.got);
    ASSERT_EQ(std::count(bytes.begin() + 4, bytes.end(), static_cast<std::uint8_t>(number)),
              static_cast<std::ptrdiff_t>(bytes.size() - 4));
    ++at.got;
    if (by_note) {
      at.notes.push_back({at.end->peer_session(Other(side)), message.end});
    } else {
      ASSERT_FALSE(at.end->Release(message.source, message.channel, now));
    }
  }

  static void Seize(Side& at, std::size_t side, bool is_left_behind, Nanos now) {
    const Config config = SmallConfig(static_cast<NodeId>(side));
    ASSERT_FALSE(at.old.Attach(config, at.area(at.in_spare), at.node.rings.bytes()));
    at.in_spare = !at.in_spare;
    ASSERT_FALSE(at.end->Init(config, at.area(at.in_spare), at.node.rings.bytes(), nullptr, now));
    at.end->Rebuild(at.old);
    GiveBack(*at.end, side, at.notes);
    ASSERT_EQ(at.end->Check(), nullptr);
    at.old_notes = std::exchange(at.notes, {});
    if (is_left_behind) at.steps = 20;
  }
};

// What a rebuilt endpoint knows is enough.
TEST_F(Rebuild, AfterEveryStepLosesAndRepeatsNothing) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto sides = {std::make_unique<Side>(0), std::make_unique<Side>(1)};
    const auto at = [&sides](std::size_t side) -> Side& { return **(sides.begin() + side); };
    for (const std::size_t side : {0, 1}) {
      ASSERT_FALSE(at(side).end->SetAddress(Other(side), AddressOf(side)));
    }
    Nanos now = kSecond;
    int left_behind = 0;
    for (int step = 0; step < 4000; ++step) {
      now += static_cast<Nanos>(random() % 300'000);
      const std::size_t side = random() % 2;
      Side& own = at(side);
      Endpoint& end = *own.end;
      if (own.steps > 0 && --own.steps == 0) GoOn(own, side, now);
      GiveBack(end, side, own.notes);
      own.notes.clear();
      const bool runs = own.steps == 0;
      std::vector<std::uint8_t> text(4 + random() % 900, static_cast<std::uint8_t>(own.sent));
      std::memcpy(text.data(), &own.sent, 4);
      if (runs && step < 3000 && !end.Send(Other(side), 0, text, now)) ++own.sent;
      if (end.NextDeadline() <= now) end.OnTimer(now);
      Message message;
      while (runs && random() % 4 != 0 && end.Receive(message)) {
        Read(own, side, message, seed % 2 != 0, now);
        if (HasFatalFailure()) return;
      }
      std::vector<std::uint8_t> room(2000);
      Address ignored;
      while (const std::size_t size = end.NextDatagram(now, room, ignored)) {
        Deliver(at(1 - side), 1 - side, MutableBytes(room).first(size), random() % 8 == 0, now);
      }
      if (!runs || random() % 16 != 0) continue;
      const bool is_left_behind = !own.datagram.empty();
      left_behind += is_left_behind ? 1 : 0;
      Seize(own, side, is_left_behind, now);
      if (HasFatalFailure()) return;
    }
    for (const std::size_t side : {0, 1}) {
      EXPECT_GT(at(side).sent, 200u);
      EXPECT_EQ(at(1 - side).got, at(side).sent);
    }
    EXPECT_GT(left_behind, 20);
  }
}

// What it tells again is more than one packet may hold.
TEST(RebuildOfMany, TellsTheCreditsOfAllChannels) {
  Config config = SmallConfig(0);
  config.channels = 256;
  Node a(config);
  config.node = 1;
  Node b(config);
  ASSERT_FALSE(a.endpoint.SetAddress(1, Address{{}, 1}));
  ASSERT_FALSE(b.endpoint.SetAddress(0, Address{{}, 2}));
  Endpoint* ends[] = {&a.endpoint, &b.endpoint};
  Nanos now = kSecond;
  const auto exchange = [&] {
    for (int step = 0; step < 40; ++step) {
      now += kMillisecond;
      for (const std::size_t side : {0, 1}) {
        if (ends[side]->NextDeadline() <= now) ends[side]->OnTimer(now);
        std::vector<std::uint8_t> room(2000);
        Address ignored;
        while (const std::size_t size = ends[side]->NextDatagram(now, room, ignored)) {
          const Address from{{}, static_cast<std::uint16_t>(2 - side)};
          ends[1 - side]->OnDatagram(from, MutableBytes(room).first(size), false, now);
        }
      }
    }
  };
  const std::vector<std::uint8_t> text(8, 3);
  ASSERT_FALSE(ends[1]->Send(0, 0, text, now));
  exchange();

  Endpoint fresh;
  config.node = 0;
  ASSERT_FALSE(fresh.Init(config, a.spare.bytes(), a.rings.bytes(), nullptr, now));
  fresh.Rebuild(a.endpoint);
  ends[0] = &fresh;
  exchange();
  EXPECT_EQ(ends[1]->counters().bad_frames, 0u);

  // Data behind as many credits as there are is not lost either.
  for (int channel = 0; channel < 256; ++channel) {
    ASSERT_FALSE(fresh.Send(1, static_cast<ChannelId>(channel), text, now));
  }
  exchange();
  EXPECT_EQ(ends[1]->counters().bad_frames, 0u);
  Message message;
  int got = 0;
  for (; ends[1]->Receive(message); ++got) {
    ASSERT_FALSE(ends[1]->Release(message.source, message.channel, now));
  }
  EXPECT_EQ(got, 256);
}

}  // namespace
}  // namespace sekisho::pm
