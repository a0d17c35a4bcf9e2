// SPDX-License-Identifier: Apache-2.0
// The queue server's daemon: what it answers, keeps and sends.
#include <gmock/gmock.h>

#include "qserver/server_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ServerTest, RunsAJobFromItsRequestToItsEnd) {
  const auto agent = Attach("n1");

  const std::string job = SubmitOk("r1", "&(executable=/bin/x)(arguments=$(HOME))");
  const proto::ServerMessage::Start start = agent->NextStart();
  agent->Started(start.task());
  agent->Output(start.task(), 0, "hello\n");
  agent->Output(start.task(), 0, "oops\n", proto::OutputChunk::STDERR);
  agent->Exited(start.task(), 7, 6, 5);

  EXPECT_EQ(start.account(), "alice");
  EXPECT_THAT(start.argument(), ElementsAre("/bin/x", "/home/alice"));
  EXPECT_THAT(EventsToEnd(job), ElementsAre("submitted", "queued", "allocated", "task_started",
                                            "task_exited", "ended"));
  EXPECT_EQ(ended_.state(), proto::DONE);
  EXPECT_EQ(ended_.exit().code(), 7);
  EXPECT_EQ(Output(job, true), "hello\n");
  EXPECT_EQ(Output(job, false, 1), "oops\n");
  EXPECT_EQ(Output(job, true, 0, 4), "o\n");
  proto::ServerMessage last;
  while (!last.has_forget()) {
    last = agent->Next();
    ASSERT_NE(last.kind_case(), proto::ServerMessage::KIND_NOT_SET);
  }
}

TEST_F(ServerTest, SendsOutputWhileTheTaskRuns) {
  const auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  const proto::TaskKey key = agent->NextStart().task();
  agent->Started(key);
  grpc::ClientContext context;
  proto::OutputRequest request;
  request.set_job_id(job);
  request.set_follow(true);
  auto reader = queue_->Output(&context, request);

  proto::OutputChunk chunk;
  agent->Output(key, 0, "one");
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.data(), "one");
  agent->Output(key, 3, "two");
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.offset(), 3u);
  agent->Exited(key, 0, 6, 0);

  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ServerTest, AJobWhoseLastOutputHasNoRoomEndsByIt) {
  spool_reserve_ = uint64_t{1} << 62;
  Restart();
  const auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  const proto::TaskKey key = agent->NextStart().task();
  agent->Started(key);
  agent->Exited(key, 0, 6, 0);  // its output is all that is missing
  agent->Output(key, 0, "hello\n");

  EventsToEnd(job);
  EXPECT_EQ(ended_.state(), proto::FAILED);
  EXPECT_THAT(ended_.reason(), HasSubstr("no room for more output"));
  proto::ServerMessage last;
  while (!last.has_forget()) {  // its node gives it up
    last = agent->Next();
    ASSERT_NE(last.kind_case(), proto::ServerMessage::KIND_NOT_SET);
  }
}

TEST_F(ServerTest, RefusesAtOnceWhatCanNeverRunAndKeepsNothing) {
  proto::SubmitReply reply;
  const grpc::Status status = Submit("r1", "&(executable=/bin/x)(count=5)", reply);

  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("can never run here: asks for more than there is"));
  grpc::ClientContext context;
  proto::StatusRequest request;
  request.add_job_id(JobIdFor("siteA", "/CN=Alice", "r1"));
  proto::StatusReply jobs;
  ASSERT_TRUE(queue_->Status(&context, request, &jobs).ok());
  EXPECT_EQ(jobs.job(0).state(), proto::UNKNOWN);
}

TEST_F(ServerTest, RefusesWhatItDoesNotUnderstand) {
  proto::SubmitReply reply;
  EXPECT_THAT(Submit("r1", "&(executable=/bin/x)(colour=red)", reply).error_message(),
              HasSubstr("colour"));
  EXPECT_THAT(Submit("r2", "+(&(executable=/bin/x))", reply).error_message(),
              HasSubstr("several parts"));
  EXPECT_THAT(Submit("r3", "&(executable=$(NOPE))", reply).error_message(), HasSubstr("NOPE"));
  EXPECT_THAT(Submit("r4", "&(executable=/bin/x)(username=bob)", reply).error_message(),
              HasSubstr("username=bob"));
}

TEST_F(ServerTest, ARepeatedRequestIsTheSameJob) {
  const auto agent = Attach("n1");
  proto::SubmitReply first, second;

  ASSERT_TRUE(Submit("r1", "&(executable=/bin/x)", first).ok());
  ASSERT_TRUE(Submit("r1", "&(executable=/bin/x)", second).ok());

  EXPECT_FALSE(first.is_repeat());
  EXPECT_TRUE(second.is_repeat());
  EXPECT_EQ(first.job_id(), second.job_id());
  EXPECT_EQ(first.warning_size(), 0);
  ASSERT_EQ(second.warning_size(), 1);
  EXPECT_THAT(second.warning(0), HasSubstr("the request is known already: nothing new was started, it is job "));
}

TEST_F(ServerTest, AJobWaitsForANodeAndRunsWhenItComes) {
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");

  const auto agent = Attach("n1");
  const proto::TaskKey key = agent->NextStart().task();
  agent->Exited(key, 0);

  EXPECT_EQ(key.job_id(), job);
  EXPECT_THAT(EventsToEnd(job),
              ElementsAre("submitted", "queued", "waiting", "allocated", "task_exited", "ended"));
}

TEST_F(ServerTest, AJobIsKeptWhileTheAllocatorIsSilent) {
  const auto agent = Attach("n1");
  allocator_.is_silent = true;
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");

  allocator_.is_silent = false;
  EXPECT_EQ(agent->NextStart().task().job_id(), job);
}

TEST_F(ServerTest, ARestartLosesNothingAndStartsNothingTwice) {
  auto agent = Attach("n1");
  const std::string running = SubmitOk("r1", "&(executable=/bin/x)(count=2)");
  const proto::TaskKey first = agent->NextStart().task();
  const proto::TaskKey second = agent->NextStart().task();
  agent->Started(first);
  agent->Output(first, 0, "before ");
  const std::string waiting = SubmitOk("r2", "&(executable=/bin/x)");
  while (!agent->Next().has_output_taken()) {
  }
  agent.reset();

  Restart();
  agent = std::make_unique<Agent>(*server_, "n1", std::vector{first, second});
  const proto::ServerMessage welcome = agent->Next();
  ASSERT_EQ(welcome.welcome().resume_size(), 2);
  EXPECT_EQ(welcome.welcome().resume(0).stdout_offset(), 7u);
  agent->Output(first, 7, "after");
  agent->Exited(first, 0, 12);
  agent->Exited(second, 3);
  EXPECT_EQ(agent->NextStart().task().job_id(), waiting);

  EventsToEnd(running);
  EXPECT_EQ(ended_.exit().code(), 3);
  EXPECT_EQ(Output(running, false), "before after");
}

TEST_F(ServerTest, CancelKillsAndOnlyItsOwnerMay) {
  const auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  const proto::TaskKey key = agent->NextStart().task();
  agent->Started(key);

  EXPECT_EQ(Cancel(job, "/CN=Bob").error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(Cancel("aaaaaaaaaaaaa", "/CN=Alice").error_code(), grpc::NOT_FOUND);
  EXPECT_TRUE(Cancel(job, "/CN=Alice").ok());
  const proto::ServerMessage kill = agent->Next();
  EXPECT_EQ(kill.kill().signal(), 15);
  EXPECT_EQ(kill.kill().grace_ms(), 5000);
  agent->Exited(key, 0);

  EventsToEnd(job);
  EXPECT_EQ(ended_.state(), proto::CANCELLED);
}

TEST_F(ServerTest, WhatIsCancelledBeforeItComesDoesNotRun) {
  const auto agent = Attach("n1");
  const std::string early = JobIdFor("siteA", "/CN=Alice", "r1");

  EXPECT_EQ(Cancel(early, "/CN=Alice").error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(Cancel(early, "/CN=Alice").error_code(), grpc::NOT_FOUND);
  proto::SubmitReply reply;
  EXPECT_THAT(Submit("r1", "&(executable=/bin/x)", reply).error_message(),
              HasSubstr("was cancelled by its user before it came here"));

  // Only by its owner.
  EXPECT_EQ(Cancel(JobIdFor("siteA", "/CN=Alice", "r2"), "/CN=Bob").error_code(), grpc::NOT_FOUND);
  EXPECT_TRUE(Submit("r2", "&(executable=/bin/x)", reply).ok());
}

TEST_F(ServerTest, ALostAgentChangesNoState) {
  auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  const proto::TaskKey key = agent->NextStart().task();
  agent->Started(key);
  ASSERT_TRUE(Becomes(job, proto::ACTIVE));
  agent.reset();

  agent = Attach("n1", {key});
  agent->Exited(key, 0);
  EXPECT_THAT(EventsToEnd(job), ElementsAre("submitted", "queued", "allocated", "task_started",
                                            "task_exited", "ended"));
}

TEST_F(ServerTest, PassesInputToTheFirstTaskAndSaysWhatItTook) {
  const auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/cat)", true);
  const proto::ServerMessage::Start start = agent->NextStart();
  EXPECT_TRUE(start.has_input());
  agent->Started(start.task());
  grpc::ClientContext context;
  proto::InputReply reply;
  auto writer = queue_->Input(&context, &reply);
  proto::InputChunk chunk;
  chunk.set_job_id(job);
  chunk.set_data("abc");
  chunk.set_end(true);
  writer->Write(chunk);

  const proto::ServerMessage input = agent->Next();
  EXPECT_EQ(input.input().data(), "abc");
  EXPECT_TRUE(input.input().end());
  agent->InputTaken(start.task(), 3, true);

  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(reply.accepted(), 3u);
}

// As a diagnosis has them: "agent n1 ok".
std::vector<std::string> Hops(proto::Queue::Stub& queue) {
  grpc::ClientContext context;
  auto stream = queue.Diagnose(&context, proto::DiagnoseRequest());
  std::vector<std::string> hops;
  for (proto::Hop hop; stream->Read(&hop);) {
    hops.push_back(hop.name() + (hop.is_ok() ? " ok" : " down"));
  }
  return hops;
}

// Calls that feed a job's input.
struct Feeding {
  Feeding(proto::Queue::Stub& queue, std::string job) : job(std::move(job)), writer(queue.Input(&context, &reply)) {}
  void Send(uint64_t offset, const std::string& data, bool is_end = false) {
    proto::InputChunk chunk;
    chunk.set_job_id(job);
    chunk.set_offset(offset);
    chunk.set_data(data);
    chunk.set_end(is_end);
    writer->Write(chunk);
  }
  grpc::ClientContext context;
  proto::InputReply reply;
  std::string job;
  std::unique_ptr<grpc::ClientWriter<proto::InputChunk>> writer;
};

TEST_F(ServerTest, InputThatWasLostWithTheNodesConnectionIsAskedForAgain) {
  auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/cat)", true);
  const proto::TaskKey key = agent->NextStart().task();
  agent->Started(key);
  Feeding first(*queue_, job);
  first.Send(0, "abc");
  EXPECT_EQ(agent->Next().input().data(), "abc");

  agent.reset();  // it may have been lost on the way
  agent = Attach("n1", {key});
  first.Send(3, "def");
  EXPECT_EQ(first.writer->Finish().error_code(), grpc::OUT_OF_RANGE);

  Feeding second(*queue_, job);
  second.Send(0, "abcdef");
  EXPECT_EQ(agent->Next().input().data(), "abcdef");
}

// The answer would be taken for that of the end, which waits in the call, and the task would wait for ever.
TEST_F(ServerTest, ACallIsNotAnsweredWellWhoseNodeIsLostBeforeItsEndWasHeard) {
  auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/cat)", true);
  const proto::TaskKey key = agent->NextStart().task();
  agent->Started(key);
  Feeding first(*queue_, job);
  first.Send(0, "abc");
  EXPECT_EQ(agent->Next().input().data(), "abc");
  agent.reset();
  ASSERT_TRUE(test::Eventually([&] { return Hops(*queue_)[2] == "agent n1 down"; }));

  first.Send(3, "", true);

  EXPECT_EQ(first.writer->Finish().error_code(), grpc::UNAVAILABLE);
  agent = Attach("n1", {key});
  agent->InputTaken(key, 3, false);
  Feeding second(*queue_, job);
  second.Send(0, "abc", true);
  EXPECT_TRUE(agent->Next().input().end());
  agent->InputTaken(key, 3, true);
  EXPECT_TRUE(second.writer->Finish().ok());
  EXPECT_EQ(second.reply.accepted(), 3u);
}

TEST_F(ServerTest, OneCallFeedsAJobInPiecesThatAreNotTooLarge) {
  const auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/cat)", true);
  agent->Started(agent->NextStart().task());
  Feeding first(*queue_, job);
  first.Send(0, "abc");
  EXPECT_EQ(agent->Next().input().data(), "abc");

  Feeding second(*queue_, job);
  second.Send(3, std::string(300 << 10, 'x'));

  EXPECT_EQ(first.writer->Finish().error_code(), grpc::ABORTED);
  EXPECT_EQ(second.writer->Finish().error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(ServerTest, ServesOnlyJobmanagersAndNodes) {
  Restart(errors::NotAJobmanager("/CN=Eve"));
  proto::SubmitReply reply;
  EXPECT_EQ(Submit("r1", "&(executable=/bin/x)", reply).error_code(), grpc::PERMISSION_DENIED);
  grpc::ClientContext context;
  auto events = queue_->Events(&context, proto::EventsRequest());
  EXPECT_EQ(events->Finish().error_code(), grpc::PERMISSION_DENIED);

  for (const char* name : {"stranger", "Alice Liddell"}) {  // not by its certificate; not in the inventory
    Agent stranger(*server_, name);
    EXPECT_EQ(stranger.Next().kind_case(), proto::ServerMessage::KIND_NOT_SET);
  }
}

TEST_F(ServerTest, DiagnosesEveryHopBehindIt) {
  const auto agent = Attach("n1");

  EXPECT_THAT(Hops(*queue_), ElementsAre("qserver ok", "allocator ok", "agent n1 ok", "agent n2 down"));
}

}  // namespace
}  // namespace sekisho::qserver
