// SPDX-License-Identifier: Apache-2.0
// Durability does not cost a commit for each job.
#include <future>
#include <optional>

#include <SQLiteCpp/SQLiteCpp.h>

#include "qserver/server_fixture.h"
#include "tests/support/commits.h"

namespace sekisho::qserver {
namespace {

TEST_F(ServerTest, SubmissionsThatComeTogetherAreCommittedTogether) {
  constexpr int count = 24;
  const std::string database = state_ + "/events.db";
  const size_t before = test::CommitsIn(database);
  SQLite::Database other(database, SQLite::OPEN_READWRITE);
  auto busy = std::make_optional<SQLite::Transaction>(other, SQLite::TransactionBehavior::IMMEDIATE);

  std::vector<std::future<std::string>> submits;
  proto::StatusRequest all;
  for (int i = 0; i < count; ++i) {
    const std::string id = "r" + std::to_string(i);
    all.add_job_id(JobIdFor("siteA", "/CN=Alice", id));
    submits.push_back(std::async(std::launch::async, [this, id] { return SubmitOk(id, "&(executable=/bin/x)"); }));
  }
  // All have come, none is on disk, and nobody has been answered.
  EXPECT_TRUE(test::Eventually([&] {
    grpc::ClientContext context;
    proto::StatusReply reply;
    return queue_->Status(&context, all, &reply).ok() &&
           std::all_of(reply.job().begin(), reply.job().end(), [](const auto& job) { return job.state() == proto::PENDING; });
  }));
  for (const auto& submit : submits) {
    EXPECT_EQ(submit.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  }
  busy.reset();
  for (auto& submit : submits) {
    EXPECT_FALSE(submit.get().empty());
  }

  const size_t commits = test::CommitsIn(database) - before;
  std::printf("%d submissions: %zu commits\n", count, commits);
  EXPECT_LE(commits, 5u);  // they are waiting jobs: their places' reasons may be one more
}

}  // namespace
}  // namespace sekisho::qserver
