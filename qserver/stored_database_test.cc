// SPDX-License-Identifier: Apache-2.0
// tests/data/qserver-N.db: what a queue server of an earlier version has left.  Each stays for ever.
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>

#include "qserver/server_fixture.h"

namespace sekisho::qserver {
namespace {

// Made by 0.1 of 2026-11-22: the jobs of a user, stopped while one ran and some waited.
TEST_F(ServerTest, TakesUpTheJobsOfAStoredDatabase) {
  server_.reset();
  allocator_.names.emplace_back("a-n1");
  std::filesystem::copy_file(std::string(std::getenv("SEKISHO_SOURCE")) + "/tests/data/qserver-1.db",
                             state_ + "/events.db", std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(state_ + "/events.db-wal");
  std::filesystem::remove(state_ + "/events.db-shm");
  Restart();

  proto::StatusRequest request;
  for (const char* id : {"op2gnn5nymx4p", "f4sb6ujoynniq", "nur4k6eww3qzb", "yrixmkc3mi64p", "sbpzfg7brw3r7",
                         "h2w75xkoxdoy6", "i3lnkutsezlb7", "3cqlc3vqutd7j"}) {
    request.add_job_id(id);
  }
  grpc::ClientContext context;
  proto::StatusReply reply;
  ASSERT_TRUE(queue_->Status(&context, request, &reply).ok());

  std::vector<std::string> seen;
  for (const proto::JobStatus& job : reply.job()) {
    seen.push_back(StateName(job.state()) + (job.is_held() ? " held" : "") +
                   (job.after().empty() ? "" : " after " + job.after(0)));
  }
  EXPECT_THAT(seen, ::testing::ElementsAre("DONE", "DONE", "DONE", "CANCELLED", "PENDING held",
                                           "PENDING after sbpzfg7brw3r7", "PENDING held", "ACTIVE"));
  EXPECT_EQ(reply.job(1).exit().code(), 3);
  EXPECT_EQ(reply.job(2).array().failed(), 3);
  EXPECT_EQ(reply.job(6).array().what().at_once(), 2);

  // What ran is taken up again where it was.
  auto agent = Attach("a-n1", {});
  EXPECT_EQ(EventsToEnd("3cqlc3vqutd7j").back(), "ended");
  EXPECT_EQ(ended_.reason(), "node a-n1 has lost it");
}

}  // namespace
}  // namespace sekisho::qserver
