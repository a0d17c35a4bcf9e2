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
    launch.set_job_id("j");
    return launches.Open(launch, input_offset,
                         [this](std::optional<proto::LaunchOut> out) { answers.push_back(std::move(out)); });
  }
  static proto::ServerMessage Ended(uint64_t id) {
    proto::ServerMessage message;
    message.mutable_launch_ended()->set_id(id);
    return message;
  }
  static proto::ServerMessage InputTaken(uint64_t id, uint64_t offset) {
    proto::ServerMessage message;
    message.mutable_launch_input_taken()->set_id(id);
    message.mutable_launch_input_taken()->set_offset(offset);
    return message;
  }
  static proto::ServerMessage Output(uint64_t id, uint64_t offset, const std::string& data) {
    proto::ServerMessage message;
    message.mutable_launch_output()->set_id(id);
    message.mutable_launch_output()->set_offset(offset);
    message.mutable_launch_output()->set_data(data);
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

TEST(Launches, TakeNoMoreInputThanTheHelperTakes) {
  Fixture fixture;
  fixture.Open(10, 100);
  fixture.launches.Input(10, std::string(200'000, 'x'), false);
  EXPECT_EQ(fixture.sent.back().launch_input().offset(), 100U);
  EXPECT_TRUE(fixture.launches.HasRoomForInput(10));
  fixture.launches.Input(10, std::string(200'000, 'x'), false);
  EXPECT_EQ(fixture.sent.back().launch_input().offset(), 200'100U);
  EXPECT_FALSE(fixture.launches.HasRoomForInput(10));

  fixture.launches.Handle(Fixture::InputTaken(10, 100));
  EXPECT_FALSE(fixture.launches.HasRoomForInput(10));
  fixture.launches.Handle(Fixture::InputTaken(10, 300'000));
  EXPECT_TRUE(fixture.launches.HasRoomForInput(10));
  fixture.launches.Handle(Fixture::InputTaken(10, 1'000'000));
  EXPECT_TRUE(fixture.launches.HasRoomForInput(10));
  EXPECT_EQ(fixture.answers.size(), 3U);  // its launcher may go on
}

TEST(Launches, TakeNoMorePiecesOfInputThanTheHelperTakes) {
  Fixture fixture;
  fixture.Open(10);
  int pieces = 0;
  for (; fixture.launches.HasRoomForInput(10) && pieces < 100'000; ++pieces) {
    fixture.launches.Input(10, "x", false);
  }

  EXPECT_EQ(pieces, 257);  // one more than an honest launcher has on its way
  fixture.launches.Handle(Fixture::InputTaken(10, 1));
  EXPECT_TRUE(fixture.launches.HasRoomForInput(10));
}

TEST(Launches, SendNoInputThatSaysNothing) {
  Fixture fixture;
  fixture.Open(10);
  fixture.launches.Input(10, "", false);
  EXPECT_EQ(fixture.sent.size(), 1U);

  fixture.launches.Input(10, "", true);
  fixture.launches.Input(10, "", true);
  fixture.launches.Input(10, "late", false);
  ASSERT_EQ(fixture.sent.size(), 2U);
  EXPECT_TRUE(fixture.sent[1].launch_input().end());
}

TEST(Launches, AcknowledgeEachOutputOnceAndOnlyWhenAllOfItIsTaken) {
  Fixture fixture;
  fixture.Open(10);
  const auto taken = [&](uint64_t offset) {
    fixture.sent.clear();
    fixture.launches.OutputTaken(10, proto::OutputChunk::STDOUT, offset);
    return fixture.sent.empty() ? 0 : fixture.sent[0].launch_taken().offset();
  };
  EXPECT_EQ(taken(5), 0U);  // none has come

  fixture.launches.Handle(Fixture::Output(10, 0, "hello"));
  fixture.launches.Handle(Fixture::Output(10, 5, "world"));
  EXPECT_EQ(taken(4), 0U);
  EXPECT_EQ(taken(7), 5U);
  EXPECT_EQ(taken(7), 0U);
  EXPECT_EQ(taken(1'000'000), 10U);

  fixture.launches.Handle(Fixture::Output(10, 0, "hello"));  // said again
  EXPECT_EQ(taken(10), 5U);
}

TEST(Launches, SayOfWhichJobTheyAre) {
  Fixture fixture;
  fixture.Open(10);
  fixture.launches.Input(10, "x", false);
  fixture.launches.Handle(Fixture::Output(10, 0, "x"));
  fixture.launches.OutputTaken(10, proto::OutputChunk::STDOUT, 1);
  fixture.launches.Close(10);

  ASSERT_EQ(fixture.sent.size(), 4U);
  EXPECT_EQ(fixture.sent[1].launch_input().job_id(), "j");
  EXPECT_EQ(fixture.sent[2].launch_taken().job_id(), "j");
  EXPECT_EQ(fixture.sent[3].launch_input().job_id(), "j");
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
