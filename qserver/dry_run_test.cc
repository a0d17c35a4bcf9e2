// SPDX-License-Identifier: Apache-2.0
// A job that is only tried.
#include <future>

#include <gmock/gmock.h>

#include "qserver/server_fixture.h"

namespace sekisho::qserver {
namespace {

TEST_F(ServerTest, ADryRunTriesTheProgramAndLeavesNoJob) {
  const auto agent = Attach("n1");
  for (const int gram_code : {0, 5}) {
    std::thread node([&] {
      const proto::ServerMessage::Start start = agent->NextStart();
      EXPECT_TRUE(start.check_only());
      agent->Exited(start.task(), 0, 0, 0, gram_code);
    });
    proto::SubmitReply reply;
    const grpc::Status status = Submit("r1", "&(executable=/bin/x)", reply, false, true);
    node.join();
    EXPECT_EQ(status.ok(), gram_code == 0) << status.error_message();
    EXPECT_EQ(reply.dry_run(), gram_code == 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(state_ + "/spool"));
}

TEST_F(ServerTest, ADryRunOnAFullSiteGoesToANodeThatCouldRunIt) {
  const auto first = Attach("n1");
  const auto second = Attach("n2");
  const std::string filler = SubmitOk("r1", "&(executable=/bin/x)(count=4)");
  for (int task = 0; task < 2; ++task) {
    first->NextStart();
    second->NextStart();
  }

  proto::SubmitReply reply;
  auto submitted = std::async(std::launch::async, [&] {
    return Submit("r2", "&(executable=/bin/x)(queue=n2)", reply, false, /*dry_run=*/true);
  });
  const proto::ServerMessage::Start trial = second->NextStart();
  second->Exited(trial.task(), 0);

  EXPECT_TRUE(trial.check_only());
  const grpc::Status status = submitted.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(ServerTest, ADryRunThatNoNodeCouldRunNowSaysSo) {
  const auto first = Attach("n1");

  proto::SubmitReply reply;
  const grpc::Status status = Submit("r1", "&(executable=/bin/x)(queue=n2)", reply, false, /*dry_run=*/true);

  EXPECT_EQ(status.error_message(),
            "no node that could run the job is up to check it on: waits for processors on R");
}

}  // namespace
}  // namespace sekisho::qserver
