// SPDX-License-Identifier: Apache-2.0
#include "agent/launches.h"

#include <gtest/gtest.h>
#include <vector>

namespace sekisho::agent {
namespace {

struct Fixture {
  Outbox outbox;
  Launches launches{outbox};
  std::vector<proto::AgentMessage> sent;
  std::vector<std::optional<proto::LaunchOut>> answers;

  Fixture() {
    outbox.Connect([this](proto::AgentMessage message) { sent.push_back(std::move(message)); });
  }
  bool Open(uint64_t id, uint64_t input_offset = 0) {
    proto::AgentMessage::Launch launch;
    launch.set_id(id);
    return launches.Open(launch, input_offset,
                         [this](std::optional<proto::LaunchOut> out) { answers.push_back(std::move(out)); });
  }
  static proto::ServerMessage Ended(uint64_t id) {
    proto::ServerMessage message;
    message.mutable_launch_ended()->set_id(id);
    return message;
  }
  static proto::ServerMessage Again(uint64_t id) {
    proto::ServerMessage message;
    message.mutable_launch_again()->set_id(id);
    return message;
  }
};

TEST(Launches, AnswersGoToTheOneThatAsked) {
  Fixture fixture;
  EXPECT_TRUE(fixture.Open(10));
  EXPECT_TRUE(fixture.Open(11));

  EXPECT_TRUE(fixture.launches.Handle(Fixture::Ended(11)));
  ASSERT_EQ(fixture.answers.size(), 1U);
  EXPECT_EQ(fixture.answers[0]->ended().id(), 11U);
  EXPECT_TRUE(fixture.launches.Handle(Fixture::Ended(999)));
  EXPECT_FALSE(fixture.launches.Handle(proto::ServerMessage()));
}

TEST(Launches, OneIsOpenOnce) {
  Fixture fixture;
  fixture.Open(10);

  EXPECT_FALSE(fixture.Open(10));
  EXPECT_EQ(fixture.sent.size(), 1U);
}

TEST(Launches, ClosingSaysThatNobodyWaits) {
  Fixture fixture;
  fixture.Open(10);
  fixture.Open(11);
  fixture.launches.Handle(Fixture::Ended(11));
  fixture.sent.clear();

  fixture.launches.Close(11);
  fixture.launches.Close(10);
  ASSERT_EQ(fixture.sent.size(), 2U);
  for (const uint64_t id : {10U, 11U}) {
    EXPECT_EQ(fixture.sent[id == 10].launch_input().id(), id);
    EXPECT_TRUE(fixture.sent[id == 10].launch_input().cancel());
  }
  EXPECT_EQ(fixture.launches.size(), 0U);
}

TEST(Launches, KnowHowMuchInputIsOnItsWay) {
  Fixture fixture;
  fixture.Open(10, 100);
  fixture.launches.Input(10, "hello", false);
  EXPECT_EQ(fixture.launches.InputInFlight(10), 5U);
  EXPECT_EQ(fixture.sent.back().launch_input().offset(), 100U);

  proto::ServerMessage taken;
  taken.mutable_launch_input_taken()->set_id(10);
  for (const auto& [offset, left] : {std::pair(103U, 2U), {102U, 2U}, {1000U, 0U}}) {
    taken.mutable_launch_input_taken()->set_offset(offset);
    EXPECT_TRUE(fixture.launches.Handle(taken));
    EXPECT_EQ(fixture.launches.InputInFlight(10), left);
  }
  EXPECT_EQ(fixture.answers.size(), 3U);  // its launcher may go on
}

TEST(Launches, AreOpenedAnewAfterALossAndNotClosed) {
  Fixture of_connection;
  Fixture of_helper;
  for (Fixture* fixture : {&of_connection, &of_helper}) {
    fixture->Open(10);
    fixture->sent.clear();
  }

  of_connection.launches.OnLost();
  of_helper.launches.Handle(Fixture::Again(10));

  for (Fixture* fixture : {&of_connection, &of_helper}) {
    fixture->launches.Handle(Fixture::Ended(10));  // said before the launch is: it will come again
    fixture->launches.Input(10, "hello", false);
    ASSERT_EQ(fixture->answers.size(), 1U);
    EXPECT_FALSE(fixture->answers[0]);
    fixture->launches.Close(10);
    EXPECT_TRUE(fixture->sent.empty());
    EXPECT_TRUE(fixture->Open(10));
  }
}

}  // namespace
}  // namespace sekisho::agent
