// SPDX-License-Identifier: Apache-2.0
// What administrators may ask, and who is one.
#include <gmock/gmock.h>

#include "qserver/server_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ServerTest, ANodeThatIsGoneIsDeclaredLostByAnAdministratorOnly) {
  auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  agent->Started(agent->NextStart().task());
  proto::AdministerReply reply;

  EXPECT_THAT(DeclareLost("n1", "/CN=Alice", reply).error_message(), HasSubstr("/CN=Alice is not an administrator"));
  const grpc::Status attached = DeclareLost("n1", "/CN=Admin", reply);
  EXPECT_EQ(attached.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(attached.error_message(), "node n1 is attached: it is not lost");

  agent.reset();
  ASSERT_TRUE(test::Eventually([&] { return DeclareLost("n1", "/CN=Admin", reply).ok(); }));
  EXPECT_THAT(reply.job_id(), ElementsAre(job));
  EXPECT_EQ(EventsToEnd(job).back(), "ended");
  EXPECT_EQ(ended_.state(), proto::FAILED);
  EXPECT_EQ(ended_.reason(), "node n1 was declared lost by /CN=Admin");
}

// As a broken machine on the way could, with what it recorded.
TEST_F(ServerTest, AWordSaidAgainEndsNothingThatCameLater) {
  proto::AdministerReply reply;
  ASSERT_TRUE(DeclareLost("n1", "/CN=Admin", reply).ok());
  auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  agent->Started(agent->NextStart().task());
  ASSERT_EQ(EventsTo("task_started", job).back(), "task_started");
  agent.reset();

  grpc::Status status;
  ASSERT_TRUE(test::Eventually([&] {
    status = DeclareLost("n1", "/CN=Admin", reply);
    return status.ok();
  }));

  EXPECT_THAT(reply.job_id(), IsEmpty());
  Restart();
  auto again = Attach("n1");
  EXPECT_FALSE(EventsToEnd(job).empty());  // lost by its agent's word only
  EXPECT_EQ(ended_.reason(), "node n1 has lost it");
}

TEST_F(ServerTest, ABanEndsTheSubjectsJobsAndShutsItOutUntilItIsLiftedAlsoOverARestart) {
  auto agent = Attach("n1");
  const std::string running = SubmitOk("r1", "&(executable=/bin/x)");
  const proto::TaskKey task = agent->NextStart().task();
  agent->Started(task);
  const std::string waiting = SubmitOk("r2", "&(executable=/bin/x)(count=2)");
  proto::RequestBody::Administer word;
  word.mutable_ban()->set_subject("/CN=Alice");
  word.mutable_ban()->set_reason("key stolen");
  proto::AdministerReply reply;

  ASSERT_TRUE(Administer("b1", word, "/CN=Admin", reply).ok());

  EXPECT_THAT(reply.job_id(), ::testing::UnorderedElementsAre(running, waiting));
  EXPECT_EQ(EventsToEnd(waiting).back(), "ended");
  EXPECT_EQ(ended_.reason(), "/CN=Alice was banned by /CN=Admin: key stolen");
  agent->Exited(task, 0);
  EXPECT_EQ(EventsToEnd(running).back(), "ended");
  EXPECT_EQ(ended_.state(), proto::CANCELLED);
  Restart();
  proto::SubmitReply submitted;
  EXPECT_EQ(Submit("r3", "&(executable=/bin/x)", submitted).error_message(),
            "/CN=Alice is banned from this site: key stolen");

  word.mutable_ban()->set_lift(true);
  ASSERT_TRUE(Administer("b2", word, "/CN=Admin", reply).ok());
  SubmitOk("r3", "&(executable=/bin/x)");
  EXPECT_THAT(Administer("b3", word, "/CN=Admin", reply).error_message(), HasSubstr("/CN=Alice is not banned"));
}

TEST_F(ServerTest, AWordsRepeatIsAnsweredAndNotDoneAgain) {
  proto::RequestBody::Administer word;
  word.mutable_ban()->set_subject("/CN=Alice");
  proto::AdministerReply reply;
  ASSERT_TRUE(Administer("b1", word, "/CN=Admin", reply).ok());
  proto::RequestBody::Administer lift = word;
  lift.mutable_ban()->set_lift(true);
  ASSERT_TRUE(Administer("b2", lift, "/CN=Admin", reply).ok());

  EXPECT_TRUE(Administer("b1", word, "/CN=Admin", reply).ok());

  SubmitOk("r1", "&(executable=/bin/x)");
}

TEST_F(ServerTest, NothingStartsOnADrainedSiteAndItsWaitersAreToldWhy) {
  auto agent = Attach("n1");
  proto::RequestBody::Administer word;
  word.mutable_drain()->set_reason("new switch");
  proto::AdministerReply reply;

  ASSERT_TRUE(Administer("d1", word, "/CN=Admin", reply).ok());

  const auto is_drained = [](const proto::NodeState& node) { return node.is_drained(); };
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  ASSERT_TRUE(test::Eventually([&] {
    const proto::DecideRequest asked = allocator_.Asked();
    return asked.node_size() == 1 && is_drained(asked.node(0));
  }));
  word.mutable_drain()->set_lift(true);
  ASSERT_TRUE(Administer("d2", word, "/CN=Admin", reply).ok());
  EXPECT_EQ(agent->NextStart().task().job_id(), job);
}

TEST_F(ServerTest, AnAdministratorEndsAnybodysJobWithAReason) {
  auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  const proto::TaskKey task = agent->NextStart().task();
  agent->Started(task);
  proto::RequestBody::Administer word;
  word.mutable_kill()->set_job_id(job);
  word.mutable_kill()->set_reason("fills the disk");
  proto::AdministerReply reply;

  EXPECT_EQ(Administer("k1", word, "/CN=Alice", reply).error_code(), grpc::PERMISSION_DENIED);
  ASSERT_TRUE(Administer("k1", word, "/CN=Admin", reply).ok());

  agent->Exited(task, 0);
  EXPECT_EQ(EventsToEnd(job).back(), "ended");
  EXPECT_EQ(ended_.reason(), "ended by /CN=Admin: fills the disk");
}

}  // namespace
}  // namespace sekisho::qserver
