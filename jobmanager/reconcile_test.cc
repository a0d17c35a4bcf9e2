// SPDX-License-Identifier: Apache-2.0
// What the queue server says, and its stream of events does not.
#include <gmock/gmock.h>

#include "jobmanager/service_fixture.h"

namespace sekisho::jobmanager {
namespace {

using testing::HasSubstr;

class ReconcileTest : public JobManagerTest {
 protected:
  void SetUp() override {
    compare_ = milliseconds(100);
    JobManagerTest::SetUp();
    ASSERT_TRUE(Submit(Request("r1")).ok());
    ASSERT_TRUE(Submit(Request("r2")).ok());
    WaitFor(Job("r1"), proto::PENDING);
    WaitFor(Job("r2"), proto::PENDING);
  }
  // The event that comes after so many others.
  void Withhold(size_t after) {
    inside_->Do([&] { queue_->Withhold(queue_->last_sequence() + after + 1); });
  }
  void UntilAsked(int times) {
    int before = 0;
    inside_->Do([&] { before = queue_->asked; });
    inside_->Until([&] { return queue_->asked >= before + times; });
  }
  int Streams() {
    int streams = 0;
    inside_->Do([&] { streams = queue_->streams; });
    return streams;
  }
  // Of all that the jobmanager has stored of an ended job.
  int Events(const std::string& id) {
    const auto context = As(kAlice);
    const auto reader = Follow(*context, id);
    int events = 0;
    for (proto::Update update; reader->Read(&update);) {
      events += update.has_event();
    }
    EXPECT_TRUE(reader->Finish().ok());
    return events;
  }
};

TEST_F(ReconcileTest, AnEndThatTheStreamPassedOverIsFetchedWithinARound) {
  Withhold(2);
  EmitEnd(Job("r1"), "", 7);
  EmitEnd(Job("r2"));
  WaitFor(Job("r2"), proto::DONE);

  WaitFor(Job("r1"), proto::DONE);

  EXPECT_EQ(StatusOf(Job("r1")).exit().code(), 7);
  EXPECT_EQ(Events(Job("r1")), 5);
  EXPECT_EQ(Events(Job("r2")), 5);  // came twice, taken once
}

TEST_F(ReconcileTest, AnEndThatWasTheLastOfTheStreamIsFetchedToo) {
  Withhold(2);
  EmitEnd(Job("r1"), "", 7);

  WaitFor(Job("r1"), proto::DONE);

  EXPECT_EQ(StatusOf(Job("r1")).exit().code(), 7);
}

TEST_F(ReconcileTest, WhatWasFetchedAndNotStoredBeforeAKillIsFetchedAgain) {
  Withhold(2);
  EmitEnd(Job("r1"), "", 7);
  EmitEnd(Job("r2"));
  WaitFor(Job("r1"), proto::DONE);
  manager_->on.Do([this] { EXPECT_EQ(manager_->jobs->book().position(), 8u); });

  Restart();

  WaitFor(Job("r1"), proto::DONE);
  EXPECT_EQ(Events(Job("r1")), 5);
}

TEST_F(ReconcileTest, WhatTheStreamHasYetToSayIsNeitherInventedNorLost) {
  inside_->Do([this] { queue_->is_stalled = true; });
  EmitEnd(Job("r1"), "", 7);

  UntilAsked(5);
  EXPECT_EQ(StatusOf(Job("r1")).state(), proto::PENDING);
  inside_->Do([this] { queue_->GoOn(); });

  WaitFor(Job("r1"), proto::DONE);
  EXPECT_EQ(StatusOf(Job("r1")).exit().code(), 7);
  EXPECT_EQ(Events(Job("r1")), 5);
}

TEST_F(ReconcileTest, NothingIsFetchedAgainWhileAllAgree) {
  const int before = Streams();

  UntilAsked(5);

  EXPECT_EQ(Streams(), before);
}

TEST_F(ReconcileTest, EventsThatAreThereTogetherComeInOneMessage) {
  inside_->Do([this] { queue_->is_stalled = true; });
  EmitEnd(Job("r1"), "", 7);
  inside_->Do([this] { queue_->GoOn(); });

  WaitFor(Job("r1"), proto::DONE);
  inside_->Do([this] { EXPECT_EQ(queue_->largest_group, 3u); });
  EXPECT_EQ(Events(Job("r1")), 5);
}

TEST_F(ReconcileTest, AQueueServerOfBeforeIsHeardEventByEvent) {
  inside_->Do([this] { queue_->knows_groups = false; });

  Restart();
  EmitEnd(Job("r1"), "", 7);

  WaitFor(Job("r1"), proto::DONE);
  inside_->Do([this] { EXPECT_GE(queue_->singles, 3); });
  EXPECT_EQ(Events(Job("r1")), 5);
}

TEST_F(ReconcileTest, AJobThatIsLostUnderAStandingStreamFails) {
  inside_->Do([this] { queue_->ForgetAll(); });

  WaitFor(Job("r1"), proto::FAILED);

  EXPECT_THAT(StatusOf(Job("r1")).reason(), HasSubstr("does not know this job any more"));
}

}  // namespace
}  // namespace sekisho::jobmanager
