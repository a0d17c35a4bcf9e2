// SPDX-License-Identifier: Apache-2.0
// Jobs that a batch system runs: the conductor and the driver, with a batch system and pilots that the test
// plays.
#include "qserver/engine_driver.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qserver/demand.h"
#include "qserver/stage_plan.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kJob = "aaaaaaaaaaaaa";

class SilentAllocator final : public AllocatorLink {
 public:
  awaitable<absl::StatusOr<proto::DecideReply>> Decide(proto::DecideRequest) override {
    ++asked;
    co_return absl::UnavailableError("not for these jobs");
  }
  awaitable<absl::StatusOr<proto::InventoryReply>> Inventory() override {
    co_return proto::InventoryReply();
  }
  int asked = 0;
};

class FakeEngine final : public Engine {
 public:
  std::string name() const override { return "Slurm"; }
  awaitable<absl::StatusOr<std::string>> Submit(EngineRequest request) override {
    submitted.push_back(request);
    if (throws_at == request.job_id) {
      throw std::runtime_error("a fault");
    }
    if (not_taken.count(request.job_id) > 0) {
      co_return absl::UnavailableError("not this one");
    }
    co_return answer;
  }
  awaitable<absl::Status> Check(EngineRequest) override { co_return answer.status(); }
  awaitable<absl::Status> Cancel(std::string job_id, std::string account) override {
    cancelled.push_back(job_id + " of " + account);
    co_return absl::OkStatus();
  }
  awaitable<absl::StatusOr<std::map<std::string, EngineState>>> Query() override {
    ++asked;
    if (answers-- <= 0) {
      co_return absl::UnavailableError("no answer");
    }
    co_return states;
  }

  absl::StatusOr<std::string> answer = "17";
  std::map<std::string, EngineState> states = {{"17", {false, true, "PENDING", "Resources"}}};
  std::set<std::string> not_taken;
  std::string throws_at;  // this job
  std::vector<EngineRequest> submitted;
  std::vector<std::string> cancelled;
  int asked = 0;
  int answers = std::numeric_limits<int>::max();  // it answers only so often
};

class EngineDriverTest : public ::testing::Test {
 protected:
  EngineDriverTest() {
    char name[] = "/tmp/sekisho-engine-XXXXXX";
    directory_ = mkdtemp(name);
    Restart();
  }
  ~EngineDriverTest() override { std::filesystem::remove_all(directory_); }

  // As after a kill -9.
  void Restart() {
    driver_.reset();
    conductor_.reset();
    store_.reset();
    loop_ = std::make_unique<Loop>(1);
    spool_ = std::make_unique<Spool>(directory_ + "/spool");
    CHECK(spool_->Prepare().ok());
    store_ = *EventStore::Open(*loop_, directory_ + "/events.db");
    conductor_ = std::make_unique<Conductor>(*loop_, *store_, *spool_, allocator_, TaskSettings{}, 0);
    using std::chrono::milliseconds;
    driver_ = std::make_unique<EngineDriver>(*loop_, *conductor_, engine_, "secret",
                                             EngineDriver::Times{milliseconds(1), milliseconds(2),
                                                                 milliseconds(1), milliseconds(1)});
    conductor_->SetEngine(*driver_);
    CHECK(conductor_->Restore().ok());
    conductor_->Run();
    driver_->Run();
  }

  void Submit(const std::string& rsl = "&(executable=/bin/a)", const std::string& job_id = kJob) {
    Admitted admitted;
    admitted.job_id = job_id;
    admitted.submitted.set_rsl(rsl);
    admitted.submitted.set_account("alice");
    admitted.submitted.set_subject("/CN=Taro");
    admitted.submitted.set_service("jobmanager-slurm");
    proto::RequestBody body;
    body.mutable_submit()->set_rsl(rsl);
    admitted.submitted.mutable_request()->set_body(body.SerializeAsString());
    admitted.has_stage_out = HasStageOut(*rsl::ParseAndDescribe(rsl, {}));
    admitted.demand = MakeDemand(job_id, *rsl::ParseAndDescribe(rsl, {}), 0);
    admitted.asked = AskedBy(body.submit());
    bool is_answered = false;
    co_spawn(*loop_, conductor_->Submit(std::move(admitted)),
             [&](const std::exception_ptr&, absl::StatusOr<bool> answer) {
               EXPECT_TRUE(answer.ok());
               is_answered = true;
             });
    RunUntil([&] { return is_answered; });
  }
  void RunUntil(const std::function<bool()>& is_so) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_so()) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit);
      loop_->run_for(std::chrono::milliseconds(5));
    }
  }
  const proto::JobStatus& Status() const { return conductor_->queue().Find(kJob)->status; }
  bool IsHandedOver(const std::string& job_id) const {
    return !conductor_->queue().Find(job_id)->status.engine_job().empty();
  }
  void SubmitAndHandOver(const std::string& rsl = "&(executable=/bin/a)") {
    Submit(rsl);
    RunUntil([&] { return !Status().engine_job().empty(); });
  }

  proto::AgentMessage::Hello Hello(const std::string& host, int number = 0, int hosts = 1,
                                   int processes = 1) const {
    proto::AgentMessage::Hello hello;
    hello.set_node(host);
    hello.mutable_pilot()->set_job_id(kJob);
    hello.mutable_pilot()->set_token(driver_->TokenOf(kJob));
    hello.mutable_pilot()->set_engine_job("17");
    hello.mutable_pilot()->set_hosts(hosts);
    hello.mutable_pilot()->set_number(number);
    hello.mutable_pilot()->set_processes(processes);
    return hello;
  }
  // As NodesService does.
  uint64_t Attach(proto::AgentMessage::Hello hello) {
    const auto name = driver_->JudgePilot(hello);
    EXPECT_TRUE(name.ok()) << name.status();
    hello.set_node(name.value_or("nobody"));
    return conductor_->Attach(hello, [this, node = hello.node()](const proto::ServerMessage& message) {
      heard_.push_back(
          message.GetDescriptor()->FindFieldByNumber(int(message.kind_case()))->name() + "@" + node);
    });
  }
  void Say(const std::string& node, uint64_t generation, bool is_end, int code = 0) {
    proto::AgentMessage message;
    proto::TaskKey& key = is_end ? *message.mutable_exited()->mutable_task()
                                 : *message.mutable_started()->mutable_task();
    key.set_job_id(kJob);
    if (is_end) {
      message.mutable_exited()->mutable_exit()->set_code(code);
    }
    EXPECT_TRUE(conductor_->OnMessage(node, generation, message));
  }

  std::string directory_;
  SilentAllocator allocator_;
  FakeEngine engine_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<EventStore> store_;
  std::unique_ptr<Conductor> conductor_;
  std::unique_ptr<EngineDriver> driver_;
  std::vector<std::string> heard_;
};

TEST_F(EngineDriverTest, HandsAJobOverAndSaysWhyItWaitsThere) {
  SubmitAndHandOver("&(executable=/bin/a)(count=3)(queue=short)");

  RunUntil([&] { return Status().reason() == "Slurm job 17 waits: Resources"; });
  EXPECT_EQ(Status().state(), proto::PENDING);
  EXPECT_EQ(Status().engine_job(), "17");
  ASSERT_EQ(engine_.submitted.size(), 1u);
  EXPECT_EQ(engine_.submitted[0].processes, 3);
  EXPECT_EQ(engine_.submitted[0].partition, "short");
  EXPECT_EQ(allocator_.asked, 0);
}

TEST_F(EngineDriverTest, OneQuestionIsForAllJobs) {
  const std::map<std::string, std::string> jobs = {{"17", kJob}, {"18", "bbbbbbbbbbbbb"}, {"19", "ccccccccccccc"}};
  const auto all_say = [&](const std::string& reason) {
    return std::all_of(jobs.begin(), jobs.end(), [&](const auto& job) {
      return conductor_->queue().Find(job.second)->status.reason() == "Slurm job " + job.first + " waits: " + reason;
    });
  };
  for (const auto& [number, job_id] : jobs) {
    engine_.answer = number;
    engine_.states[number] = {false, true, "PENDING", "Resources"};
    Submit("&(executable=/bin/a)", job_id);
    RunUntil([&, id = job_id] { return !conductor_->queue().Find(id)->status.engine_job().empty(); });
  }
  RunUntil([&] { return all_say("Resources"); });

  engine_.answers = 1;
  for (auto& [number, state] : engine_.states) {
    state.reason = "Priority";
  }

  RunUntil([&] { return all_say("Priority"); });
}

TEST_F(EngineDriverTest, RunsAJobOnItsPilotsOnly) {
  SubmitAndHandOver();
  const uint64_t pilot = Attach(Hello("n1"));

  RunUntil([&] { return !heard_.empty() && heard_.back() == "start@n1." + kJob; });
  Say("n1." + kJob, pilot, false);
  Say("n1." + kJob, pilot, true, 3);

  RunUntil([&] { return Status().state() == proto::DONE; });
  EXPECT_EQ(Status().exit().code(), 3);
  RunUntil([&] { return heard_.back() == "forget@n1." + kJob; });
  EXPECT_THAT(engine_.cancelled, IsEmpty());
}

TEST_F(EngineDriverTest, WaitsForThePilotsOfAllHosts) {
  SubmitAndHandOver("&(executable=/bin/a)(count=3)(host_count=2)");

  Attach(Hello("n2", 1, 2, 1));
  loop_->run_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(conductor_->queue().Find(kJob)->has_processors);
  Attach(Hello("n1", 0, 2, 2));

  RunUntil([&] { return conductor_->queue().Find(kJob)->has_processors; });
  EXPECT_EQ(conductor_->queue().Find(kJob)->tasks[2].node, "n2." + kJob);
}

TEST_F(EngineDriverTest, BelievesOnlyPilotsOfTheJob) {
  SubmitAndHandOver();

  auto hello = Hello("n1");
  hello.mutable_pilot()->set_token(driver_->TokenOf("another"));
  EXPECT_TRUE(absl::IsPermissionDenied(driver_->JudgePilot(hello).status()));
  hello = Hello("n1");
  hello.mutable_pilot()->set_engine_job("18");  // handed over twice, by a daemon that was killed
  EXPECT_TRUE(absl::IsPermissionDenied(driver_->JudgePilot(hello).status()));
  for (const std::string host : {"", "n1/../n2", "n1 n2", "n1\n"}) {
    EXPECT_FALSE(driver_->JudgePilot(Hello(host)).ok()) << host;
  }
  EXPECT_FALSE(driver_->JudgePilot(Hello("n1", 1, 1)).ok());
  EXPECT_TRUE(driver_->JudgePilot(Hello("n1")).ok());
}

TEST_F(EngineDriverTest, ARestartHandsOverWhatWasNotAndNothingTwice) {
  engine_.answer = absl::UnavailableError("Unable to contact slurm controller");
  Submit();
  RunUntil([&] { return Status().reason() == "Slurm takes no job now: Unable to contact slurm controller"; });

  engine_.submitted.clear();
  engine_.answer = "17";
  Restart();
  RunUntil([&] { return Status().engine_job() == "17"; });
  EXPECT_EQ(engine_.submitted.size(), 1u);

  Restart();
  const int asked = engine_.asked;
  RunUntil([&] { return engine_.asked > asked + 1; });
  EXPECT_EQ(engine_.submitted.size(), 1u);
  EXPECT_EQ(Status().engine_job(), "17");
}

TEST_F(EngineDriverTest, AfterAnOutageJobsAreHandedOverInTheOrderOfTheirSubmission) {
  engine_.answer = absl::UnavailableError("Unable to contact slurm controller");
  std::vector<std::string> jobs;
  for (const char letter : std::string("kjihgfedcba")) {
    jobs.emplace_back(13, letter);
    Submit("&(executable=/bin/a)", jobs.back());
  }
  RunUntil([&] { return engine_.submitted.size() > 3 * jobs.size(); });

  engine_.submitted.clear();
  engine_.answer = "17";
  RunUntil([&] { return engine_.submitted.size() >= jobs.size(); });

  std::vector<std::string> handed_over;
  for (const EngineRequest& request : engine_.submitted) {
    handed_over.push_back(request.job_id);
  }
  EXPECT_EQ(handed_over, jobs);
}

TEST_F(EngineDriverTest, JobsThatAloneAreNotTakenKeepNoOtherWaiting) {
  std::vector<std::string> jobs;
  for (const char letter : std::string("abcde")) {  // more than are handed over at once
    jobs.emplace_back(13, letter);
    engine_.not_taken.insert(jobs.back());
    Submit("&(executable=/bin/a)", jobs.back());
  }

  const std::string other = "fffffffffffff";
  Submit("&(executable=/bin/a)", other);
  RunUntil([&] { return IsHandedOver(other); });

  engine_.not_taken.clear();
  RunUntil([&] {
    return std::all_of(jobs.begin(), jobs.end(), [this](const std::string& job_id) { return IsHandedOver(job_id); });
  });
}

TEST_F(EngineDriverTest, AFaultInHandingOneJobOverIsThatJobsAlone) {
  engine_.throws_at = kJob;
  Submit();
  RunUntil([&] { return Status().reason().starts_with("Slurm takes no job now"); });

  const std::string other = "bbbbbbbbbbbbb";
  Submit("&(executable=/bin/a)", other);
  RunUntil([&] { return IsHandedOver(other); });

  engine_.throws_at.clear();
  RunUntil([&] { return IsHandedOver(kJob); });
}

TEST_F(EngineDriverTest, ARestartFindsTheRunningTaskAgain) {
  SubmitAndHandOver();
  Say("n1." + kJob, Attach(Hello("n1")), false);
  RunUntil([&] { return Status().state() == proto::ACTIVE && conductor_->IsPublished(kJob); });

  engine_.states = {{"17", {false, false, "RUNNING", "None"}}};
  Restart();
  const int asked = engine_.asked;
  RunUntil([&] { return engine_.asked > asked; });  // nobody speaks for it: it is asked about
  EXPECT_EQ(Status().state(), proto::ACTIVE);
  auto hello = Hello("n1");
  proto::TaskKey& held = *hello.add_held();
  held.set_job_id(kJob);
  const uint64_t pilot = Attach(hello);
  Say("n1." + kJob, pilot, true, 5);

  RunUntil([&] { return Status().state() == proto::DONE; });
  EXPECT_EQ(Status().exit().code(), 5);
  EXPECT_EQ(engine_.submitted.size(), 1u);
}

TEST_F(EngineDriverTest, AJobThatEndsThereWithoutItsPilotFailsWithSlurmsWord) {
  SubmitAndHandOver();
  const uint64_t pilot = Attach(Hello("n1"));
  Say("n1." + kJob, pilot, false);
  RunUntil([&] { return Status().state() == proto::ACTIVE && conductor_->IsPublished(kJob); });

  loop_->run_for(std::chrono::milliseconds(20));
  engine_.states = {{"17", {true, false, "NODE_FAIL", "None"}}};
  const int asked = engine_.asked;
  loop_->run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(engine_.asked, asked);  // as long as its pilot is there nobody else is asked
  conductor_->Detach("n1." + kJob, pilot);

  RunUntil([&] { return Status().state() == proto::FAILED; });
  EXPECT_EQ(Status().reason(), "Slurm has ended its job 17: NODE_FAIL");
}

// As often as it is killed: Slurm's job holds a keeper that starts it anew.
TEST_F(EngineDriverTest, APilotThatWasStartedAnewGoesOnWithItsJob) {
  SubmitAndHandOver();
  const uint64_t first = Attach(Hello("n1"));
  Say("n1." + kJob, first, false);
  RunUntil([&] { return Status().state() == proto::ACTIVE && conductor_->IsPublished(kJob); });
  conductor_->Detach("n1." + kJob, first);

  engine_.states = {{"17", {false, false, "RUNNING", "None"}}};
  const int asked = engine_.asked;
  RunUntil([&] { return engine_.asked > asked; });
  proto::AgentMessage::Hello again = Hello("n1");
  again.add_held()->set_job_id(kJob);  // task 0, by its record
  const uint64_t second = Attach(again);
  Say("n1." + kJob, second, true, 7);

  RunUntil([&] { return Status().state() == proto::DONE; });
  EXPECT_EQ(Status().exit().code(), 7);
  EXPECT_EQ(engine_.submitted.size(), 1u);
}

TEST_F(EngineDriverTest, AJobWhosePilotIsGivenUpFailsWithSlurmsReason) {
  SubmitAndHandOver();
  const uint64_t pilot = Attach(Hello("n1"));
  Say("n1." + kJob, pilot, false);
  RunUntil([&] { return Status().state() == proto::ACTIVE && conductor_->IsPublished(kJob); });
  engine_.states = {{"17", {true, false, "FAILED", "NonZeroExitCode"}}};
  conductor_->Detach("n1." + kJob, pilot);

  RunUntil([&] { return Status().state() == proto::FAILED; });
  EXPECT_EQ(Status().reason(), "Slurm has ended its job 17: FAILED (NonZeroExitCode)");
}

TEST_F(EngineDriverTest, AJobWhoseFilesGoOutHoldsNothingThereAndHearsOfNoEndThere) {
  SubmitAndHandOver("&(executable=/bin/a)(file_stage_out=(a client:///a))");
  const uint64_t pilot = Attach(Hello("n1"));
  Say("n1." + kJob, pilot, false);
  Say("n1." + kJob, pilot, true, 3);

  RunUntil([&] { return heard_.back() == "forget@n1." + kJob; });
  EXPECT_EQ(Status().state(), proto::STAGE_OUT);
  conductor_->Detach("n1." + kJob, pilot);
  engine_.states = {{"17", {true, false, "COMPLETED", "None"}}};
  const int asked = engine_.asked;
  loop_->run_for(std::chrono::milliseconds(20));
  Restart();
  loop_->run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(engine_.asked, asked);
  EXPECT_EQ(Status().state(), proto::STAGE_OUT);

  heard_.clear();
  Attach(Hello("n1"));  // as if it had not been told
  RunUntil([&] { return !heard_.empty() && heard_.back() == "forget@n1." + kJob; });
}

TEST_F(EngineDriverTest, SilenceOfSlurmEndsNothing) {
  SubmitAndHandOver();
  const uint64_t pilot = Attach(Hello("n1"));
  Say("n1." + kJob, pilot, false);
  RunUntil([&] { return Status().state() == proto::ACTIVE && conductor_->IsPublished(kJob); });
  conductor_->Detach("n1." + kJob, pilot);

  engine_.states = {{"17", {false, false, "RUNNING", "None"}}};
  const int asked = engine_.asked;
  RunUntil([&] { return engine_.asked > asked + 2; });
  EXPECT_EQ(Status().state(), proto::ACTIVE);
}

TEST_F(EngineDriverTest, ACancelledJobIsTakenBackFromThere) {
  SubmitAndHandOver();

  proto::RequestBody cancel;
  cancel.mutable_cancel()->set_job_id(kJob);
  ASSERT_TRUE(conductor_->Command(cancel).ok());

  RunUntil([&] { return !engine_.cancelled.empty(); });
  EXPECT_THAT(engine_.cancelled, ElementsAre(kJob + " of alice"));
  EXPECT_EQ(Status().state(), proto::CANCELLED);
  EXPECT_TRUE(absl::IsPermissionDenied(driver_->JudgePilot(Hello("n1")).status()));
}

TEST_F(EngineDriverTest, ARunningJobIsEndedByItsPilotAndThenByForce) {
  SubmitAndHandOver();
  Say("n1." + kJob, Attach(Hello("n1")), false);
  RunUntil([&] { return Status().state() == proto::ACTIVE && conductor_->IsPublished(kJob); });

  proto::RequestBody cancel;
  cancel.mutable_cancel()->set_job_id(kJob);
  ASSERT_TRUE(conductor_->Command(cancel).ok());

  RunUntil([&] { return !engine_.cancelled.empty(); });
  EXPECT_THAT(heard_, ::testing::Contains("kill@n1." + kJob));
}

TEST_F(EngineDriverTest, ARefusedJobFailsWithSlurmsWords) {
  engine_.answer = absl::FailedPreconditionError("Slurm refuses it: Invalid partition name specified");
  Submit();

  RunUntil([&] { return Status().state() == proto::FAILED; });
  EXPECT_THAT(Status().reason(), HasSubstr("Invalid partition"));
}

}  // namespace
}  // namespace sekisho::qserver
