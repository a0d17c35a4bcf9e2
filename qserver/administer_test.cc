// SPDX-License-Identifier: Apache-2.0
// What administrators may ask, and who is one.
#include <gmock/gmock.h>

#include "qserver/server_fixture.h"
#include "tests/support/eventually.h"

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

}  // namespace
}  // namespace sekisho::qserver
