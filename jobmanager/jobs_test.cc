// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/jobs.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "tests/support/faulty_log.h"
#include "tests/support/test_ca.h"

namespace sekisho::jobmanager {
namespace {

// Jobs of a queue server that knows no call: that is the first of which anything is logged.
void FollowWithAFault() {
  Loop loop(1);
  const auto store = [&loop] {
    const test::TemporaryDirectory directory;  // nothing is written
    return *EventStore::Open(loop, directory.File("jobs.db"));
  }();
  proto::Queue::CallbackService service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const std::string address = "127.0.0.1:" + std::to_string(port);
  QueueServer queue(
      loop, {.site = "siteA", .address = address, .account = "alice"},
      [&] { return grpc::CreateChannel(address, grpc::InsecureChannelCredentials()); },
      [] { return absl::OkStatus(); });
  Jobs jobs(loop, Here{"siteA", "/CN=gate"}, *store, queue, *MakeRetention(1));
  ASSERT_TRUE(jobs.Load().ok());
  const test::FaultyLog log;
  jobs.Start();
  loop.run_for(std::chrono::seconds(60));
}

TEST(Jobs, OfWhichNothingIsHeardAnyMoreEndTheirProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");

  EXPECT_DEATH(FollowWithAFault(), "cannot go on without the queue server's events");
}

}  // namespace
}  // namespace sekisho::jobmanager
