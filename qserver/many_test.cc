// SPDX-License-Identifier: Apache-2.0
// Many submissions, and many commands, in one signed request.
#include <gmock/gmock.h>

#include "qserver/server_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ManyTest : public ServerTest {
 protected:
  proto::ManyReply SubmitMany(const std::string& id, const std::vector<std::string>& rsls) {
    proto::RequestBody body;
    for (const std::string& rsl : rsls) {
      body.mutable_submit_many()->add_job()->set_rsl(rsl);
    }
    return Ask(id, body, &proto::Queue::Stub::SubmitMany);
  }
  // GRAM's number 1 cancels, ours 101 and 102 hold and release.
  proto::ManyReply CommandMany(const std::string& id, const std::vector<std::string>& jobs, int number = 1,
                               const std::string& subject = "/CN=Alice") {
    proto::RequestBody body;
    body.mutable_command_many()->set_number(number);
    body.mutable_command_many()->mutable_job_id()->Assign(jobs.begin(), jobs.end());
    return Ask(id, body, &proto::Queue::Stub::CommandMany, subject);
  }
  proto::JobStatus Status(const std::string& job_id) {
    grpc::ClientContext context;
    proto::StatusRequest request;
    request.add_job_id(job_id);
    proto::StatusReply reply;
    EXPECT_TRUE(queue_->Status(&context, request, &reply).ok());
    return reply.job(0);
  }

 private:
  using Method = grpc::Status (proto::Queue::Stub::*)(grpc::ClientContext*, const proto::QueueRequest&,
                                                      proto::ManyReply*);
  proto::ManyReply Ask(const std::string& id, proto::RequestBody body, Method method,
                       const std::string& subject = "/CN=Alice") {
    proto::QueueRequest request = Request(id, subject);
    proto::RequestBody head;
    head.ParseFromString(request.request().body());
    body.set_request_id(head.request_id());
    body.set_time_ms(head.time_ms());
    request.mutable_request()->set_body(body.SerializeAsString());
    grpc::ClientContext context;
    proto::ManyReply reply;
    const grpc::Status status = (queue_.get()->*method)(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }
};

TEST_F(ManyTest, EachIsJudgedByItself) {
  const proto::ManyReply reply = SubmitMany(
      "r1", {"&(executable=/bin/a)", "&(executable=/bin/b)(count=5)", "&(executable=/bin/c)(colour=red)", "&(executable=/bin/d)"});

  ASSERT_EQ(reply.each_size(), 4);
  EXPECT_FALSE(reply.each(0).is_refused());
  EXPECT_THAT(reply.each(1).message(), HasSubstr("can never run here"));
  EXPECT_THAT(reply.each(2).message(), HasSubstr("colour"));
  EXPECT_EQ(reply.each(0).job_id(), JobIdFor("siteA", "/CN=Alice", "r1.0"));
  EXPECT_EQ(Status(reply.each(0).job_id()).state(), proto::PENDING);
  EXPECT_EQ(Status(reply.each(1).job_id()).state(), proto::UNKNOWN);
  EXPECT_EQ(Status(reply.each(3).job_id()).executable(), "/bin/d");
}

TEST_F(ManyTest, SaidAgainTheyAreTheSameJobsAlsoAfterARestart) {
  const std::vector<std::string> rsls = {"&(executable=/bin/a)", "&(executable=/bin/b)"};
  const proto::ManyReply first = SubmitMany("r1", rsls);
  EXPECT_FALSE(first.each(1).is_repeat());

  EXPECT_TRUE(SubmitMany("r1", rsls).each(1).is_repeat());
  Restart();
  const proto::ManyReply again = SubmitMany("r1", rsls);

  EXPECT_TRUE(again.each(0).is_repeat());
  EXPECT_TRUE(again.each(1).is_repeat());
  EXPECT_EQ(again.each(1).job_id(), first.each(1).job_id());
  EXPECT_THAT(SubmitMany("r1", {"&(executable=/bin/a)", "&(executable=/bin/other)"}).each(1).message(), Not(IsEmpty()));
}

TEST_F(ManyTest, TheyRunAndEndAsOthersDo) {
  const auto agent = Attach("n1");
  const proto::ManyReply reply = SubmitMany("r1", {"&(executable=/bin/a)", "&(executable=/bin/b)"});

  for (int i = 0; i < 2; ++i) {
    const proto::ServerMessage::Start start = agent->NextStart();
    agent->Started(start.task());
    agent->Exited(start.task(), start.argument(0) == "/bin/b" ? 3 : 0);
  }

  EventsToEnd(reply.each(1).job_id());
  EXPECT_EQ(ended_.exit().code(), 3);
}

TEST_F(ManyTest, ManyAreCancelledAndWhatIsNotThereIsSaid) {
  const proto::ManyReply jobs = SubmitMany("r1", {"&(executable=/bin/a)", "&(executable=/bin/b)"});

  const proto::ManyReply reply = CommandMany("c1", {jobs.each(0).job_id(), "nosuchjob", jobs.each(1).job_id()});

  EXPECT_EQ(reply.each(0).state(), proto::CANCELLED);
  EXPECT_TRUE(reply.each(1).is_refused());
  EXPECT_EQ(Status(jobs.each(1).job_id()).state(), proto::CANCELLED);
}

TEST_F(ManyTest, AnotherSubjectCannotTellAJobFromNone) {
  const std::string job_id = SubmitMany("r1", {"&(executable=/bin/a)"}).each(0).job_id();
  const std::string none = JobIdFor("siteA", "/CN=Alice", "never");

  for (const int number : {1, 2, 3, 4, 101, 102}) {
    proto::ManyReply reply = CommandMany("c" + std::to_string(number), {job_id, none}, number, "/CN=Mallory");

    EXPECT_EQ(reply.each(0).message(), "there is no job '" + job_id + "' here") << number;
    proto::ManyReply::Each& of_none = *reply.mutable_each(1);
    of_none.set_job_id(job_id);
    of_none.set_message(reply.each(0).message());
    EXPECT_EQ(reply.each(0).SerializeAsString(), of_none.SerializeAsString()) << number;
  }
  EXPECT_EQ(Status(job_id).state(), proto::PENDING);
}

}  // namespace
}  // namespace sekisho::qserver
