// SPDX-License-Identifier: Apache-2.0
// The conductor renews the tokens of what runs on its nodes, and of nothing else.
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qserver/conductor.h"
#include "qserver/demand.h"
#include "qserver/relay_tokens.h"
#include "tests/support/test_ca.h"

namespace sekisho::qserver {
namespace {

using std::chrono::minutes;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kJob[] = "aaaaaaaaaaaaa";

// Starts all on n1 at once.
class ReadyAllocator final : public AllocatorLink {
 public:
  awaitable<absl::StatusOr<proto::DecideReply>> Decide(proto::DecideRequest request) override {
    proto::DecideReply reply;
    for (const proto::Demand& demand : request.pending()) {
      proto::Decision& decision = *reply.add_decision();
      decision.set_job_id(demand.job_id());
      proto::Placement& place = *decision.mutable_start()->add_placement();
      place.set_node("n1");
      place.set_processes(1);
    }
    co_return reply;
  }
  awaitable<absl::StatusOr<proto::InventoryReply>> Inventory() override { co_return proto::InventoryReply(); }
};

class ConductorRelayTest : public ::testing::Test {
 protected:
  ConductorRelayTest()
      : spool_(MakeDirectory() + "/spool"),
        tokens_({.address = "a-dmz:7514", .site = "siteA", .life = minutes(60)}, ca_.IssueHost("a-head")) {
    CHECK(spool_.Prepare().ok());
    store_ = *EventStore::Open(loop_, directory_ + "/events.db");
    conductor_ = std::make_unique<Conductor>(loop_, *store_, spool_, allocator_, TaskSettings{}, 0);
    conductor_->SetRelay(tokens_);
    CHECK(conductor_->Restore().ok());
    conductor_->Run();
    Attach();
    Submit();
    RunUntil([&] { return started_ != nullptr; });
    task_ = started_->task();
    Say([&](proto::AgentMessage& message) { *message.mutable_started()->mutable_task() = task_; });
    given_.clear();
  }
  ~ConductorRelayTest() override { std::filesystem::remove_all(directory_); }

  std::string MakeDirectory() {
    char name[] = "/tmp/sekisho-conductor-XXXXXX";
    return directory_ = mkdtemp(name);
  }
  void Attach() {
    proto::AgentMessage::Hello hello;
    hello.set_node("n1");
    if (started_ != nullptr) {
      *hello.add_held() = task_;
    }
    generation_ = conductor_->Attach(hello, [this](const proto::ServerMessage& message) {
      if (message.has_start() && !message.start().account().empty()) {
        started_ = std::make_unique<proto::ServerMessage::Start>(message.start());
      } else if (message.has_start()) {
        given_.push_back(message.start());
      }
    });
  }
  void Submit() {
    constexpr char kRsl[] = "&(executable=/bin/a)";
    Admitted admitted;
    admitted.job_id = kJob;
    admitted.submitted.set_rsl(kRsl);
    admitted.submitted.set_account("taro");
    admitted.submitted.set_subject("/CN=Taro");
    admitted.demand = MakeDemand(kJob, *rsl::ParseAndDescribe(kRsl, {}), 0);
    co_spawn(loop_, conductor_->Submit(std::move(admitted)), Vital("the test"));
  }
  void Say(const std::function<void(proto::AgentMessage&)>& fill) {
    proto::AgentMessage message;
    fill(message);
    conductor_->OnMessage("n1", generation_, message);
    RunUntil([&] { return conductor_->IsPublished(kJob); });
  }
  void RunUntil(const std::function<bool()>& is_so) {
    while (!is_so()) {
      ASSERT_GT(loop_.run_one_for(std::chrono::seconds(20)), 0u);
    }
  }
  static identity::Time In(minutes later) {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()) + later;
  }

  std::string directory_;
  Loop loop_{1};
  Spool spool_;
  test::TestCa ca_;
  RelayTokens tokens_;
  ReadyAllocator allocator_;
  std::unique_ptr<EventStore> store_;
  std::unique_ptr<Conductor> conductor_;
  uint64_t generation_ = 0;
  std::unique_ptr<proto::ServerMessage::Start> started_;
  proto::TaskKey task_;
  std::vector<proto::ServerMessage::Start> given_;  // anew
};

TEST_F(ConductorRelayTest, ATaskThatRunsIsGivenALaterTokenAtHalfOfItsLife) {
  conductor_->RenewTokens(In(minutes(29)));
  EXPECT_THAT(given_, IsEmpty());

  conductor_->RenewTokens(In(minutes(31)));

  ASSERT_THAT(given_, SizeIs(1));
  EXPECT_EQ(given_[0].task().job_id(), kJob);
  EXPECT_NE(given_[0].file().at("relay-token"), started_->file().at("relay-token"));
  EXPECT_EQ(given_[0].argument_size(), 0);
  conductor_->RenewTokens(In(minutes(32)));
  EXPECT_THAT(given_, SizeIs(1));
}

TEST_F(ConductorRelayTest, ANodeThatWasAwayIsGivenThemWhenItIsBack) {
  conductor_->Detach("n1", generation_);
  conductor_->RenewTokens(In(minutes(31)));
  ASSERT_THAT(given_, IsEmpty());
  Attach();

  conductor_->RenewTokens(In(minutes(32)));

  EXPECT_THAT(given_, SizeIs(1));
}

TEST_F(ConductorRelayTest, ATaskThatHasEndedIsGivenNone) {
  Say([&](proto::AgentMessage& message) { *message.mutable_exited()->mutable_task() = task_; });
  ASSERT_EQ(conductor_->queue().StatusOf(kJob).state(), proto::DONE);

  conductor_->RenewTokens(In(minutes(31)));

  EXPECT_THAT(given_, IsEmpty());
}

}  // namespace
}  // namespace sekisho::qserver
