// SPDX-License-Identifier: Apache-2.0
// How jobs come in, and what is left of them when that fails.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/caller_refused.h"
#include "jobmanager/service_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/full_disk.h"

namespace sekisho::jobmanager {
namespace {

using testing::HasSubstr;

TEST_F(JobManagerTest, TheSameRequestIsTheSameJobAndAnotherRslIsRefused) {
  ASSERT_TRUE(Submit(Request("r1", "&(executable=/bin/true)(count=2)")).ok());

  const auto again = Submit(Request("r1", "&(executable=/bin/true)(count=2)"));

  ASSERT_TRUE(again.ok() && again->is_repeat());
  ASSERT_EQ(again->warning_size(), 1);
  EXPECT_THAT(again->warning(0), HasSubstr("the request is known already: nothing new was started, it is job "));
  for (const char* rsl : {"&(executable=/bin/false)(count=2)", "& (executable = /bin/true) (count = 2)"}) {  // letter by letter
    EXPECT_EQ(Submit(Request("r1", rsl)).status().code(), absl::StatusCode::kAlreadyExists) << rsl;
  }
  EXPECT_EQ(Submits(), 1u);
}

TEST_F(JobManagerTest, RefusesBadRslWithItsNumberAndTellsNobody) {
  const auto reply = Submit(Request("r1", "&(executable=/bin/true)(count=none)"));

  EXPECT_EQ(GramCode(reply.status()), 14);
  EXPECT_EQ(JobCount(), 0);
  EXPECT_EQ(Submits(), 0u);
}

TEST_F(JobManagerTest, PassesARefusalOfTheQueueServerOnAndKeepsNothing) {
  inside_->Do([this] {
    queue_->on_submit = [](const auto&) {
      return Refuse(absl::StatusCode::kPermissionDenied, 7, "mapped to alice outside, to al inside",
                    "ask root");
    };
  });

  const auto reply = Submit(Request("r1"));

  EXPECT_EQ(reply.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Message(reply.status()), "mapped to alice outside, to al inside");
  EXPECT_EQ(Remedy(reply.status()), "ask root");
  EXPECT_EQ(JobCount(), 0);
  EXPECT_EQ(StatusOf(Job("r1")).state(), proto::UNKNOWN);
  Restart();
  EXPECT_EQ(JobCount(), 0);
}

TEST_F(JobManagerTest, RefusesASubmitWhenTheQueueServerIsDownNamingTheHop) {
  StopQueue();

  const auto reply = Submit(Request("r1"));

  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(reply.status()),
              HasSubstr("the queue server of siteA does not run: the connection is refused"));
  EXPECT_THAT(Remedy(reply.status()), HasSubstr("nothing was submitted"));
  EXPECT_EQ(JobCount(), 0);
}

TEST_F(JobManagerTest, GoesOnWithTheQueueServerWhenItIsBack) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  WaitFor(Job("r1"), proto::PENDING);
  StopQueue();
  EmitEnd(Job("r1"));  // happens inside while nobody hears of it

  StartQueue(port_);

  WaitFor(Job("r1"), proto::DONE);
  EXPECT_TRUE(Submit(Request("r2")).ok());
}

TEST_F(JobManagerTest, AsksAgainWhenTheAnswerToASubmitIsLost) {
  inside_->Do([this] {
    queue_->on_submit = [this](const auto&) {
      return queue_->submits.size() == 1
                 ? absl::Status(absl::StatusCode::kUnavailable, "Socket closed")
                 : absl::OkStatus();
    };
  });

  const auto reply = Submit(Request("r1"));

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(StatusOf(Job("r1")).reason(), "the queue server does not answer; it is asked again");
  WaitFor(Job("r1"), proto::PENDING);
  EXPECT_EQ(Submits(), 2u);
  EXPECT_EQ(StatusOf(Job("r1")).reason(), "");
}

// The site's own certificate is to blame, and not the request.
TEST_F(JobManagerTest, KeepsAJobForWhichItIsRefusedItself) {
  const std::string why = "[certificate-expired] /CN=jobmanager expired at 2026-11-21T09:00:00Z";
  inside_->Do([this, why] {
    queue_->on_submit = [why](const auto&) { return absl::UnauthenticatedError(kCallerRefused + why); };
  });

  const auto reply = Submit(Request("r1"));

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(StatusOf(Job("r1")).reason(), "the queue server refuses this site's jobmanager: " + why);
  inside_->Do([this] { queue_->on_submit = [](const auto&) { return absl::OkStatus(); }; });
  WaitFor(Job("r1"), proto::PENDING);
}

TEST_F(JobManagerTest, PromisesNoJobThatIsStoredNeitherHereNorInside) {
  inside_->Do([this] {
    queue_->on_submit = [](const auto&) { return absl::Status(absl::StatusCode::kUnavailable, "Socket closed"); };
  });
  const test::FullDisk disk;

  const auto reply = Submit(Request("r1"));

  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(reply.status()), HasSubstr("cannot store the job"));
}

TEST_F(JobManagerTest, SubmitsAfterARestartWhatWasNotConfirmed) {
  inside_->Do([this] {
    queue_->on_submit = [](const auto&) {
      return absl::Status(absl::StatusCode::kUnavailable, "Socket closed");
    };
  });
  ASSERT_TRUE(Submit(Request("r1")).ok());

  inside_->Do([this] { queue_->on_submit = [](const auto&) { return absl::OkStatus(); }; });
  Restart();

  WaitFor(Job("r1"), proto::PENDING);
}

TEST_F(JobManagerTest, FailsAJobThatIsRefusedAfterTheUserWasToldOfIt) {
  inside_->Do([this] {
    queue_->on_submit = [this](const auto&) {
      return queue_->submits.size() == 1
                 ? absl::Status(absl::StatusCode::kUnavailable, "Socket closed")
                 : Refuse(absl::StatusCode::kInvalidArgument, 37, "no such queue", "x");
    };
  });
  ASSERT_TRUE(Submit(Request("r1")).ok());

  WaitFor(Job("r1"), proto::FAILED);

  EXPECT_EQ(StatusOf(Job("r1")).gram_code(), 37);
  EXPECT_EQ(StatusOf(Job("r1")).reason(), "refused by the queue server: no such queue");
}

TEST_F(JobManagerTest, TellsTheUserSoonThatAJobWaitsForAMuteQueueServer) {
  inside_->Do([this] { queue_->is_mute = true; });

  ASSERT_TRUE(Submit(Request("r1")).ok());

  EXPECT_EQ(Submits(), 1u);  // while the first question is still open
  EXPECT_EQ(StatusOf(Job("r1")).state(), proto::UNSUBMITTED);
  EXPECT_EQ(StatusOf(Job("r1")).reason(), "the queue server does not answer; it is asked again");
  Unmute();
  WaitFor(Job("r1"), proto::PENDING);
}

TEST_F(JobManagerTest, CancelsAtOnceWhatTheQueueServerHasNotAnsweredAndTellsItLater) {
  inside_->Do([this] { queue_->is_mute = true; });
  const auto context = As(kAlice);
  auto reader = manager_->stub->Run(context.get(), Request("r1"));
  proto::Update update;
  ASSERT_TRUE(reader->Read(&update));

  EXPECT_TRUE(Cancel(Job("r1")).ok());
  while (reader->Read(&update)) {
  }
  EXPECT_EQ(update.status().state(), proto::CANCELLED);
  EXPECT_EQ(update.status().gram_code(), 8);
  const size_t sent = Submits();  // once, or again if the cancel took its time

  Restart();
  EXPECT_EQ(StatusOf(Job("r1")).state(), proto::CANCELLED);
  Unmute();
  inside_->Until([this] { return !queue_->commands.empty(); });
  EXPECT_EQ(Commands()[0].cancel().job_id(), Job("r1"));
  ASSERT_TRUE(Submit(Request("r2")).ok());
  WaitFor(Job("r2"), proto::PENDING);  // what the queue server says of r1 came before
  EXPECT_EQ(StatusOf(Job("r1")).state(), proto::CANCELLED);
  EXPECT_EQ(Submits(), sent + 1);  // r2; r1 was not sent again
  EXPECT_TRUE(Submit(Request("r1"))->is_repeat());
}

// A way inside that takes connections and says nothing.
TEST_F(JobManagerTest, ASubmissionThatWaitsForTheWayInsideIsCancelledAtOnce) {
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(silent, 64), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  manager_->Kill();
  manager_ = new Manager(directory_, "127.0.0.1:" + std::to_string(ntohs(address.sin_port)), std::chrono::seconds(60));
  KeptManagers().push_back(manager_);
  auto submitted = std::async(std::launch::async, [this] { return Submit(Request("r1")); });

  proto::RequestBody body;
  body.set_request_id("c1");
  body.mutable_cancel()->set_request_id("r1");
  EXPECT_TRUE(test::Eventually([&] {  // it has to come first
    proto::CommandReply reply;
    const auto context = As(kAlice);
    return manager_->stub->Command(context.get(), Carry(body), &reply).ok();
  }));

  const absl::Status status = submitted.get().status();
  EXPECT_EQ(GramCode(status), 8);
  EXPECT_THAT(Message(status), HasSubstr("cancelled by its user before it was submitted"));
  EXPECT_EQ(JobCount(), 0);
  close(silent);
}

TEST_F(JobManagerTest, AJobThatTheQueueServerHasLostFails) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  ASSERT_TRUE(Submit(Request("r2")).ok());
  WaitFor(Job("r1"), proto::PENDING);
  WaitFor(Job("r2"), proto::PENDING);
  const int port = port_;
  StopQueue();
  inside_->Do([this] { queue_->ForgetAll(); });
  StartQueue(port);

  WaitFor(Job("r1"), proto::FAILED);
  WaitFor(Job("r2"), proto::FAILED);
  EXPECT_THAT(StatusOf(Job("r1")).reason(), HasSubstr("does not know this job any more"));
  EXPECT_EQ(StatusOf(Job("r1")).gram_code(), 17);
}

TEST_F(JobManagerTest, ADryRunAsksTheQueueServerAndLeavesNothing) {
  proto::RequestBody body;
  body.set_request_id("r1");
  body.mutable_submit()->set_rsl("&(executable=/bin/true)");
  body.mutable_submit()->set_dry_run(true);

  const auto reply = Submit(Carry(body));

  ASSERT_TRUE(reply.ok());
  EXPECT_TRUE(reply->dry_run());
  EXPECT_EQ(Submits(), 1u);
  EXPECT_EQ(JobCount(), 0);
}

TEST_F(JobManagerTest, ServesManySubmitsAtOnce) {
  std::vector<std::thread> clients;
  std::atomic<int> accepted = 0;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < 20; ++i) {
        accepted += Submit(Request(std::to_string(client) + "-" + std::to_string(i))).ok();
      }
    });
  }
  for (auto& client : clients) {
    client.join();
  }

  EXPECT_EQ(accepted, 160);
  EXPECT_EQ(JobCount(), 160);
}

}  // namespace
}  // namespace sekisho::jobmanager
