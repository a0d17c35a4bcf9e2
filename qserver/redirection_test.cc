// SPDX-License-Identifier: Apache-2.0
#include "qserver/redirection.h"

#include <fmt/format.h>

#include "common/refusal.h"
#include "qserver/queue_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHome[] = "/home/alice";

class RedirectionTest : public QueueTest {
 protected:
  void Submit(const std::string& clauses) {
    Admitted admitted = Ask("j", "&(executable=/bin/true)" + clauses);
    admitted.has_stage_out = HasStageOut(*rsl::ParseAndDescribe(admitted.submitted.rsl(), {}));
    const proto::Decision decision = On("j", {{"n1", 4}});
    Keep(queue_->Accept(admitted, &decision, kNow));
    Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  }
  absl::StatusOr<proto::JobEvent::Redirected> Judge(const std::string& update) const {
    const auto described = rsl::ParseAndDescribe(update, {}, rsl::Use::kStdioUpdate);
    EXPECT_TRUE(described.ok()) << update;
    return JudgeRedirection(*queue_->Find("j"), *described, kHome, {});
  }
  Effects Redirect(const std::string& update) {
    const auto redirected = Judge(update);
    EXPECT_TRUE(redirected.ok()) << redirected.status();
    return Keep(queue_->Redirect("j", *redirected, kNow));
  }
  void ExpectRefused(const std::string& update, int gram_code, const std::string& words) const {
    const absl::Status status = Judge(update).status();
    EXPECT_EQ(GramCode(status), gram_code) << update;
    EXPECT_THAT(Message(status), HasSubstr(words)) << update;
    EXPECT_NE(Remedy(status), "") << update;
  }
  // What is still to go, as the stager's plan has it.
  std::vector<std::string> ToGo() {
    std::vector<std::string> all;
    const auto plan = PlanStageOut(*rsl::ParseAndDescribe(Status("j").rsl(), {}), kHome, "j", {}, RedirectionsOf(Status("j")));
    for (const StageOut& item : *plan) {
      if (queue_->IsToGo("j", item.number, item.stream != rsl::kNoStream)) {
        all.push_back(fmt::format("{} {} {}", item.number, item.attribute, item.destination));
      }
    }
    return all;
  }
  void EndTask(uint64_t out = 0) {
    Keep(queue_->OnExited("n1", Exited("j", 0, 0, out), kNow));
  }
  void Goes(int number) {
    proto::StagedFile file;
    file.set_number(number);
    Keep(queue_->OnStagedOut("j", file, kNow));
  }
};

TEST_F(RedirectionTest, TheJobsOutputGoesToTheNewPlaceAndNowhereElse) {
  Submit("(stdout=https://old/o)(stderr=https://old/e)");

  EXPECT_THAT(Words(Redirect("&(stdout=(https://new/o)(client:///o)(/dev/null))")), ElementsAre("redirected"));
  EndTask();

  EXPECT_EQ(Status("j").state(), proto::STAGE_OUT);
  EXPECT_THAT(ToGo(), ElementsAre("2 stdout https://new/o", "3 stdout client:///o", "1 stderr https://old/e"));
}

TEST_F(RedirectionTest, OutlivesARestart) {
  Submit("(stdout=https://old/o)");
  Redirect("&(stdout=https://new/o)");
  Restart();
  EXPECT_EQ(queue_->Find("j")->redirections, 1);
  Redirect("&(stderr=https://new/e)");
  Restart();
  EndTask();

  EXPECT_THAT(ToGo(), ElementsAre("1 stdout https://new/o", "2 stderr https://new/e"));
}

TEST_F(RedirectionTest, WhatWasKeptOnlyGoesOutNow) {
  Submit("");

  Redirect("&(stdout=out)");
  EndTask();

  EXPECT_EQ(Status("j").state(), proto::STAGE_OUT);
  EXPECT_THAT(ToGo(), ElementsAre("0 stdout out"));
  EXPECT_THAT(Words(Keep(queue_->OnStageOutDone("j", absl::OkStatus(), kNow))), Contains("ended"));
  EXPECT_EQ(Status("j").standard_output().destination_size(), 0) << "an ended job takes little memory";
}

TEST_F(RedirectionTest, SaidAgainItChangesNothing) {
  Submit("(stdout=https://old/o)");
  Redirect("&(stdout=https://new/o)");

  EXPECT_THAT(Words(Redirect("&(stdout=https://new/o)(stdout_position=0)")), IsEmpty());
  EXPECT_THAT(Words(Redirect("&(stdout=https://new/p)")), ElementsAre("redirected"));
  EndTask();
  EXPECT_THAT(ToGo(), ElementsAre("2 stdout https://new/p"));
}

TEST_F(RedirectionTest, AServerThatIsAwayIsReplacedAlsoAfterTheRun) {
  Submit("(stdout=(client:///o)(https://away/o))");
  EndTask();
  Goes(0);

  Redirect("&(stdout=https://new/o)");
  EXPECT_THAT(ToGo(), ElementsAre("2 stdout https://new/o"));
  Goes(2);

  EXPECT_THAT(Words(Redirect("&(stdout=https://new/o)")), IsEmpty()) << "it is there";
  ExpectRefused("&(stdout=https://late/o)", 107, "its stdout has gone to https://new/o already");
}

TEST_F(RedirectionTest, APositionIsWhatTheReceiverHas) {
  Submit("(stdout=https://h/o)");
  queue_->OnSpooled(Key("j", 0), 0, 120, kNow);

  ExpectRefused("&(stdout_position=121)", 117, "stdout_position: expected at most 120, all that has been written so far, saw 121");
  ExpectRefused("&(stderr_position=1)", 119, "stderr_position: expected at most 0");
  ExpectRefused("&(stdout=out)(stdout_position=5)", 117, "1:15: stdout_position: expected 0, as \"out\" is a file");
  Redirect("&(stdout_position=120)");

  EXPECT_EQ(Status("j").standard_output().position(), 120u);
  EXPECT_THAT(Status("j").standard_output().destination(), ElementsAre("https://h/o"));
  Redirect("&(stdout=https://new/o)");
  EXPECT_EQ(Status("j").standard_output().position(), 0u);
}

TEST_F(RedirectionTest, APositionIsOfOneTask) {
  Submit("(count=2)(stdout=https://h/o)");
  queue_->OnSpooled(Key("j", 0), 0, 120, kNow);

  ExpectRefused("&(stdout=https://h/p)(stdout_position=5)", 117, "there are 2 tasks");
}

TEST_F(RedirectionTest, WhatTheTasksWriteThemselvesPassesNobody) {
  Submit("(stdout=out)(stderr=/dev/null)");

  ExpectRefused("&(stdout=https://h/o)", 107, "its tasks write stdout to out themselves");
  ExpectRefused("&(stderr=https://h/e)", 107, "its tasks write stderr to /dev/null themselves");
}

TEST_F(RedirectionTest, PathsAreJudgedAsInASubmission) {
  Submit("");

  ExpectRefused("&(stdout=/etc/passwd)", 65, "stdout: expected a path below /home/alice");
  ExpectRefused("&(stderr=(a)(file:///home/alice/../bob/e))", 63, "stderr: expected a path");
}

TEST_F(RedirectionTest, IsRefusedToWhatEndsOrHasEnded) {
  Submit("");
  Keep(*queue_->Cancel("j", "cancelled by its user", kNow));
  ExpectRefused("&(stdout=https://h/o)", 107, "it is being cancelled");
  EndTask();
  EXPECT_EQ(Status("j").state(), proto::CANCELLED);
  ExpectRefused("&(stdout=https://h/o)", 107, "it is CANCELLED, and nothing of it goes out any more");
}

TEST_F(RedirectionTest, IsRefusedToArrays) {
  Admitted admitted = Ask("j", "&(executable=/bin/true)(array=1-2)");
  *admitted.submitted.mutable_array()->add_range() = Range(1, 2);
  Keep(queue_->Accept(admitted, nullptr, kNow));

  ExpectRefused("&(stdout=https://h/o)", 107, "it is an array");
}

TEST_F(RedirectionTest, CountsAsTheSubjectsDescriptionsDo) {
  Submit("");
  const uint64_t before = queue_->UsageOf("/CN=Alice").bytes;

  Redirect("&(stdout=https://h/" + std::string(1000, 'o') + ")");

  EXPECT_GT(queue_->UsageOf("/CN=Alice").bytes, before + 1000);
  EndTask();
  Keep(queue_->OnStageOutDone("j", absl::OkStatus(), kNow));
  queue_->Forget("j");
  EXPECT_EQ(queue_->UsageOf("/CN=Alice").bytes, 0u);
}

}  // namespace
}  // namespace sekisho::qserver
