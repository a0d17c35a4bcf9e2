// SPDX-License-Identifier: Apache-2.0
// What a jobmanager shows of its jobs, and to whom.
#include <algorithm>
#include <gmock/gmock.h>

#include "jobmanager/service_fixture.h"

namespace sekisho::jobmanager {
namespace {

using testing::HasSubstr;

TEST_F(JobManagerTest, TakesAJobInAndShowsItsWayToTheEnd) {
  const auto reply = Submit(Request("r1"));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->job_id(), Job("r1"));
  EXPECT_EQ(reply->account(), "alice");
  EXPECT_FALSE(reply->is_repeat());
  WaitFor(reply->job_id(), proto::PENDING);

  EmitEnd(reply->job_id(), "", 3);
  WaitFor(reply->job_id(), proto::DONE);

  const proto::JobStatus status = StatusOf(reply->job_id());
  EXPECT_EQ(status.exit().code(), 3);
  EXPECT_EQ(status.executable(), "/bin/true");
}

TEST_F(JobManagerTest, RunStreamsEventsAndAllOutputThenTheStatus) {
  const auto context = As(kAlice);
  auto reader = manager_->stub->Run(context.get(), Request("r1"));
  proto::Update update;
  ASSERT_TRUE(reader->Read(&update));
  ASSERT_TRUE(update.has_submitted());

  EmitEnd(Job("r1"), "hello, wide world\n");
  std::string output;
  int events = 0;
  while (reader->Read(&update) && !update.has_status()) {
    output += update.output().data();
    events += update.has_event();
    EXPECT_FALSE(update.event().submitted().has_request());
  }

  EXPECT_EQ(output, "hello, wide world\n");
  EXPECT_EQ(events, 5);  // submitted, queued, started, exited, ended
  EXPECT_EQ(update.status().state(), proto::DONE);
  EXPECT_FALSE(reader->Read(&update));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(JobManagerTest, LargeOutputIsAskedForInPortionsThatGrow) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  std::string all;
  for (int line = 0; all.size() < 1'200'000; ++line) {
    all += std::to_string(line) + "\n";
  }
  EmitEnd(Job("r1"), all);

  const auto context = As(kAlice);
  auto reader = manager_->stub->Run(context.get(), Request("r1"));
  std::string output;
  proto::Update update;
  while (reader->Read(&update) && !update.has_status()) {
    output += update.output().data();
  }

  EXPECT_TRUE(output == all) << output.size() << " of " << all.size();
  std::vector<uint64_t> portions;
  inside_->Do([&] { portions = queue_->portions; });
  ASSERT_GT(portions.size(), 5u);
  EXPECT_EQ(portions.front(), 64u << 10);
  EXPECT_GT(portions.back(), 200u << 10);
  EXPECT_TRUE(std::is_sorted(portions.begin(), portions.end()));
}

TEST_F(JobManagerTest, RunOfAKnownRequestShowsTheSameJobFromTheStart) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  EmitEnd(Job("r1"), "once");
  WaitFor(Job("r1"), proto::DONE);

  const auto context = As(kAlice);
  auto reader = manager_->stub->Run(context.get(), Request("r1"));
  proto::Update update;
  std::string output;
  ASSERT_TRUE(reader->Read(&update));
  EXPECT_TRUE(update.submitted().is_repeat());
  while (reader->Read(&update)) {
    output += update.output().data();
  }

  EXPECT_EQ(output, "once");
  EXPECT_EQ(update.status().state(), proto::DONE);
  EXPECT_EQ(Submits(), 1u);
}

TEST_F(JobManagerTest, AttachGoesOnWhereTheClientWas) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  EmitEnd(Job("r1"), "0123456789");
  WaitFor(Job("r1"), proto::DONE);

  proto::AttachRequest request;
  request.set_job_id(Job("r1"));
  request.set_events(true);
  request.set_output(true);
  request.set_after_sequence(3);
  request.add_position()->set_offset(7);
  const auto context = As(kAlice);
  auto reader = manager_->stub->Attach(context.get(), request);
  proto::Update update;
  std::string output;
  std::vector<uint64_t> sequences;
  while (reader->Read(&update)) {
    output += update.output().data();
    if (update.has_event()) {
      sequences.push_back(update.event().sequence());
    }
  }

  EXPECT_EQ(output, "789");
  EXPECT_THAT(sequences, testing::ElementsAre(4));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(JobManagerTest, KnowsItsJobsAfterBeingKilled) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  WaitFor(Job("r1"), proto::PENDING);
  EmitEnd(Job("r1"), "", 4);
  WaitFor(Job("r1"), proto::DONE);

  Restart();

  WaitFor(Job("r1"), proto::DONE);  // from our disk, or once more from the queue server
  EXPECT_EQ(StatusOf(Job("r1")).exit().code(), 4);
  EXPECT_TRUE(Submit(Request("r1"))->is_repeat());
}

TEST_F(JobManagerTest, ForgetsAnEndedJobWhenItsTimeIsOverAndNoOther) {
  ASSERT_TRUE(Submit(Request("ended")).ok() && Submit(Request("waits")).ok());
  EmitEnd(Job("ended"));
  WaitFor(Job("ended"), proto::DONE);
  EXPECT_TRUE(IsOnDisk(Job("ended")));

  retention_ = {milliseconds(1), milliseconds(1)};
  Restart();

  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (IsOnDisk(Job("ended")) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_FALSE(IsOnDisk(Job("ended")));
  EXPECT_EQ(StatusOf(Job("ended")).state(), proto::UNKNOWN);
  EXPECT_TRUE(IsOnDisk(Job("waits")));
  EXPECT_EQ(StatusOf(Job("waits")).state(), proto::PENDING);
}

TEST_F(JobManagerTest, ShowsTheDescriptionThatOnlyItsStoreHas) {
  ASSERT_TRUE(Submit(Request("r1")).ok());

  EXPECT_THAT(StatusOf(Job("r1")).rsl(), HasSubstr("/bin/true"));
  EXPECT_EQ(StatusOf(Job("r1"), kMallory).rsl(), "");
  Restart();
  EXPECT_THAT(StatusOf(Job("r1")).rsl(), HasSubstr("/bin/true"));
}

TEST_F(JobManagerTest, TakesOverJobsFromTheQueueServerWhenItsOwnDatabaseIsLost) {
  inside_->Do([this] {
    JobEvent event;
    event.set_job_id(Job("r7"));
    event.mutable_submitted()->set_subject(kAlice);
    event.mutable_submitted()->set_account("alice");
    queue_->Emit(event);
    queue_->Emit(Job("r7"), [](JobEvent& queued) { queued.mutable_queued(); });
    queue_->Emit(Job("rX"), [](JobEvent& last) { last.mutable_queued(); });
  });
  ASSERT_TRUE(Submit(Request("r8")).ok());
  WaitFor(Job("r8"), proto::PENDING);  // its event comes after those

  EXPECT_EQ(StatusOf(Job("r7")).state(), proto::PENDING);
}

TEST_F(JobManagerTest, HidesAJobFromAnotherSubjectOfTheAccount) {
  ASSERT_TRUE(Submit(Request("r1")).ok());

  const proto::JobStatus status = StatusOf(Job("r1"), kMallory);
  EXPECT_EQ(status.state(), proto::UNKNOWN);
  EXPECT_EQ(status.subject(), "");

  proto::AttachRequest attach;
  attach.set_job_id(Job("r1"));
  attach.set_output(true);
  const auto context = As(kMallory);
  auto reader = manager_->stub->Attach(context.get(), attach);
  proto::Update update;
  EXPECT_FALSE(reader->Read(&update));
  EXPECT_EQ(reader->Finish().error_message(), "there is no job '" + Job("r1") + "' here");

  EXPECT_EQ(Cancel(Job("r1"), kMallory).error_message(), "there is no job '" + Job("r1") + "' here");
  EXPECT_EQ(Commands().size(), 0u);
}

TEST_F(JobManagerTest, ServesNobodyWithoutTheGatekeepersToken) {
  for (const char* token : {"", "wrong!", "secret0"}) {
    proto::StatusReply reply;
    const auto context = As(kAlice, token);
    EXPECT_EQ(manager_->stub->List(context.get(), {}, &reply).error_code(), grpc::UNAUTHENTICATED);
  }
}

TEST_F(JobManagerTest, PassesCommandsAndInputInside) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  EXPECT_TRUE(Cancel(Job("r1")).ok());
  EXPECT_EQ(Commands().size(), 1u);

  proto::InputReply accepted;
  const auto input_context = As(kAlice);
  auto writer = manager_->stub->Input(input_context.get(), &accepted);
  proto::InputChunk chunk;
  chunk.set_job_id(Job("r1"));
  for (const char* part : {"one ", "two"}) {
    chunk.set_data(part);
    EXPECT_TRUE(writer->Write(chunk));
  }
  writer->WritesDone();

  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(accepted.accepted(), 7u);
  EXPECT_EQ(Input(), "one two");
}

TEST_F(JobManagerTest, DiagnosesUpToTheFirstHopThatFails) {
  const auto hops = [this] {
    std::string names;
    const auto context = As(kAlice);
    auto reader = manager_->stub->Diagnose(context.get(), {});
    proto::Hop hop;
    while (reader->Read(&hop)) {
      names += hop.name() + (hop.is_ok() ? " ok, " : " " + hop.detail());
    }
    EXPECT_TRUE(reader->Finish().ok());
    return names;
  };

  EXPECT_EQ(hops(), "jobmanager ok, pinhole ok, qserver ok, allocator ok, ");
  StopQueue();
  EXPECT_THAT(hops(), HasSubstr("jobmanager ok, pinhole the queue server of siteA does not run"));
}

}  // namespace
}  // namespace sekisho::jobmanager
