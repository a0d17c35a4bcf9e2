// SPDX-License-Identifier: Apache-2.0
#include "agent/launches.h"

#include <gtest/gtest.h>
#include <vector>

namespace sekisho::agent {
namespace {

struct Fixture {
  Outbox outbox;
  Launches launches{outbox, 10};
  std::vector<proto::AgentMessage> sent;
  std::vector<proto::LaunchOut> answers;

  Fixture() {
    outbox.Connect([this](proto::AgentMessage message) { sent.push_back(std::move(message)); });
  }
  uint64_t Open(const std::string& node) {
    proto::AgentMessage::Launch launch;
    launch.set_node(node);
    return launches.Open(launch,
                         [this](proto::LaunchOut out) { answers.push_back(std::move(out)); });
  }
  proto::ServerMessage Ended(uint64_t id) {
    proto::ServerMessage message;
    message.mutable_launch_ended()->set_id(id);
    return message;
  }
};

TEST(Launches, AnswersGoToTheOneThatAsked) {
  Fixture fixture;
  const uint64_t first = fixture.Open("a");
  const uint64_t second = fixture.Open("b");

  EXPECT_NE(first, second);
  EXPECT_TRUE(fixture.launches.Handle(fixture.Ended(second)));
  ASSERT_EQ(fixture.answers.size(), 1U);
  EXPECT_EQ(fixture.answers[0].ended().id(), second);
  EXPECT_TRUE(fixture.launches.Handle(fixture.Ended(999)));
  EXPECT_FALSE(fixture.launches.Handle(proto::ServerMessage()));
}

TEST(Launches, ClosingSaysThatNobodyWaits) {
  Fixture fixture;
  const uint64_t running = fixture.Open("a");
  const uint64_t ended = fixture.Open("a");
  fixture.launches.Handle(fixture.Ended(ended));
  fixture.sent.clear();

  fixture.launches.Close(ended);
  fixture.launches.Close(running);
  ASSERT_EQ(fixture.sent.size(), 2U);
  for (const uint64_t id : {ended, running}) {
    EXPECT_EQ(fixture.sent[id == running].launch_input().id(), id);
    EXPECT_TRUE(fixture.sent[id == running].launch_input().cancel());
  }
  EXPECT_EQ(fixture.launches.size(), 0U);
}

TEST(Launches, KnowHowMuchInputIsOnItsWay) {
  Fixture fixture;
  const uint64_t id = fixture.Open("a");
  fixture.launches.Input(id, "hello", false);
  EXPECT_EQ(fixture.launches.InputInFlight(id), 5U);

  proto::ServerMessage taken;
  taken.mutable_launch_input_taken()->set_id(id);
  for (const auto& [offset, left] : {std::pair(3U, 2U), {2U, 2U}, {100U, 0U}}) {
    taken.mutable_launch_input_taken()->set_offset(offset);
    EXPECT_TRUE(fixture.launches.Handle(taken));
    EXPECT_EQ(fixture.launches.InputInFlight(id), left);
  }
  EXPECT_EQ(fixture.answers.size(), 3U);  // its launcher may go on
}

TEST(Launches, AreSaidAgainAfterAWelcome) {
  Fixture fixture;
  fixture.Open("a");
  fixture.launches.Handle(fixture.Ended(fixture.Open("b")));
  fixture.sent.clear();

  fixture.launches.OnWelcome();

  ASSERT_EQ(fixture.sent.size(), 1U);
  EXPECT_EQ(fixture.sent[0].launch().node(), "a");
  EXPECT_TRUE(fixture.sent[0].launch().again());
}

}  // namespace
}  // namespace sekisho::agent
