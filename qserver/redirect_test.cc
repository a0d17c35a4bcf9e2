// SPDX-License-Identifier: Apache-2.0
// A job's output redirected by its user's signed word, through the whole server.
#include <gmock/gmock.h>

#include "qserver/server_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RedirectTest : public ServerTest {
 protected:
  RedirectTest() : agent_(Attach("n1")), job_(SubmitOk("r1", "&(executable=/bin/x)")) {
    agent_->Started(agent_->NextStart().task());
    EXPECT_TRUE(Becomes(job_, proto::ACTIVE));
  }
  grpc::Status Redirect(const std::string& id, const std::string& update, const std::string& subject = "/CN=Alice") {
    proto::QueueRequest request = Request(id, subject);
    proto::RequestBody body;
    body.ParseFromString(request.request().body());
    body.mutable_signal()->set_job_id(job_);
    body.mutable_signal()->set_number(7);
    body.mutable_signal()->set_argument(update);
    request.mutable_request()->set_body(body.SerializeAsString());
    grpc::ClientContext context;
    proto::CommandReply reply;
    return queue_->Command(&context, request, &reply);
  }
  std::vector<std::string> StandardOutput() {
    grpc::ClientContext context;
    proto::StatusRequest request;
    proto::StatusReply reply;
    request.add_job_id(job_);
    EXPECT_TRUE(queue_->Status(&context, request, &reply).ok());
    const auto& to = reply.job(0).standard_output().destination();
    return {to.begin(), to.end()};
  }

  std::unique_ptr<Agent> agent_;
  const std::string job_;
};

TEST_F(RedirectTest, IsEvaluatedInsideAndOutlivesARestart) {
  EXPECT_TRUE(Redirect("s1", "&(rsl_substitution=(N o))(stdout=(https://h/$(LOGNAME)/$(N))($(SCRATCH_DIRECTORY)/o))").ok());
  EXPECT_THAT(StandardOutput(), ElementsAre("https://h/alice/o", "/home/alice/o"));

  agent_.reset();
  Restart();

  EXPECT_THAT(StandardOutput(), ElementsAre("https://h/alice/o", "/home/alice/o"));
}

TEST_F(RedirectTest, IsObeyedOnce) {
  EXPECT_TRUE(Redirect("s1", "&(stdout=https://h/1)").ok());
  EXPECT_TRUE(Redirect("s2", "&(stdout=https://h/2)").ok());
  EXPECT_TRUE(Redirect("s1", "&(stdout=https://h/1)").ok());
  EXPECT_THAT(StandardOutput(), ElementsAre("https://h/2"));
}

TEST_F(RedirectTest, IsItsOwnersToSay) {
  EXPECT_EQ(Redirect("s1", "&(stdout=https://h/o)", "/CN=Bob").error_code(), grpc::NOT_FOUND);
  EXPECT_THAT(StandardOutput(), ElementsAre());
}

TEST_F(RedirectTest, IsReadAsStrictlyAsASubmission) {
  for (const auto& [update, words] : {std::pair("&(count=2)", "1:3: count: expected an attribute of a stdio update"),
                                      {"&(stdout=gsiftp://h/o)", "is not supported"},
                                      {"&(stdout=$(NOBODY))", "NOBODY"},
                                      {"&(stdout=/home/bob/o)", "expected a path below /home/alice"},
                                      {"stdout", "expected"}}) {
    const grpc::Status refused = Redirect(update, update);
    EXPECT_EQ(refused.error_code(), grpc::INVALID_ARGUMENT) << update;
    EXPECT_THAT(refused.error_message(), HasSubstr(words)) << update;
  }
  EXPECT_THAT(StandardOutput(), ElementsAre());
  EXPECT_TRUE(Redirect("good", "&(stdout=https://h/o)").ok()) << "a refused one leaves no trace";
}

}  // namespace
}  // namespace sekisho::qserver
