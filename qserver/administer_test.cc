// SPDX-License-Identifier: Apache-2.0
// What administrators may ask, and who is one.
#include <fstream>

#include <gmock/gmock.h>

#include "qserver/administer.h"
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

// The calls go to a service of its own, which writes down what it obeys.
class AuditTest : public ServerTest {
 protected:
  AuditTest() : work_(asio::make_work_guard(loop_)), spool_(state_ + "/audited"), audit_(state_ + "/audit.jsonl") {
    CHECK(spool_.Prepare().ok());
    store_ = *EventStore::Open(loop_, state_ + "/audited.db");
    conductor_ = std::make_unique<Conductor>(loop_, *store_, spool_, allocator_, TaskSettings{}, 0);
    CHECK(conductor_->Restore().ok());
    rules_.administrators = {"/CN=Admin"};
    QueueService::Judges judges;
    judges.caller = [](const auto&) { return Jobmanager(); };
    judges.request = [](const proto::QueueRequest& request) {
      Verified verified;
      CHECK(verified.body.ParseFromString(request.request().body()));
      verified.identity.subject = request.request().signature();
      return verified;
    };
    judges.now = [] { return kTestNow; };
    service_ = std::make_unique<QueueService>(loop_, *conductor_, rules_, std::move(judges));
    service_->SetAudit([this](const std::string& line) { return audit_.Write(line); });
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    audited_ = builder.BuildAndStart();
    queue_ = proto::Queue::NewStub(
        grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~AuditTest() override {
    audited_->Shutdown(std::chrono::system_clock::now());
    audited_->Wait();
    loop_.stop();
    thread_.join();
  }

  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    std::ifstream file(state_ + "/audit.jsonl");
    for (std::string line; std::getline(file, line);) {
      lines.push_back(line);
    }
    return lines;
  }

  Loop loop_;
  asio::executor_work_guard<Loop::executor_type> work_;
  Spool spool_;
  AdmissionRules rules_;
  AuditFile audit_;
  std::unique_ptr<EventStore> store_;
  std::unique_ptr<Conductor> conductor_;
  std::unique_ptr<QueueService> service_;
  std::unique_ptr<grpc::Server> audited_;
  std::thread thread_;
};

TEST_F(AuditTest, AWordIsWrittenDownOnceBeforeItIsAnsweredAlsoWhenSaidAgain) {
  std::filesystem::create_directory(state_ + "/audit.jsonl");  // nothing can be written there
  proto::RequestBody::Administer word;
  word.mutable_ban()->set_subject("/CN=Alice");
  proto::AdministerReply reply;

  EXPECT_EQ(Administer("b1", word, "/CN=Admin", reply).error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(Administer("b1", word, "/CN=Admin", reply).error_code(), grpc::UNAVAILABLE);
  std::filesystem::remove(state_ + "/audit.jsonl");

  EXPECT_TRUE(Administer("b1", word, "/CN=Admin", reply).ok());
  EXPECT_TRUE(Administer("b1", word, "/CN=Admin", reply).ok());
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr(R"("what":"ban","request":"b1","subject":"/CN=Alice")")));
}

// The word itself is refused when it comes again: nothing is left to lift.
TEST_F(AuditTest, ALiftThatCouldNotBeWrittenDownIsByTheNextWord) {
  proto::RequestBody::Administer word;
  word.mutable_ban()->set_subject("/CN=Alice");
  proto::AdministerReply reply;
  ASSERT_TRUE(Administer("b1", word, "/CN=Admin", reply).ok());
  std::filesystem::rename(state_ + "/audit.jsonl", state_ + "/audit.jsonl.1");
  std::filesystem::create_directory(state_ + "/audit.jsonl");
  word.mutable_ban()->set_lift(true);
  EXPECT_EQ(Administer("b2", word, "/CN=Admin", reply).error_code(), grpc::UNAVAILABLE);
  std::filesystem::remove(state_ + "/audit.jsonl");

  EXPECT_EQ(Administer("b2", word, "/CN=Admin", reply).error_code(), grpc::NOT_FOUND);

  EXPECT_THAT(Lines(), ElementsAre(HasSubstr(R"("what":"unban","request":"b2")")));
}

}  // namespace
}  // namespace sekisho::qserver
