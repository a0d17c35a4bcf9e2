// SPDX-License-Identifier: Apache-2.0
// The conductor, with an allocator that takes its time.
#include "qserver/conductor.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "qserver/demand.h"

namespace sekisho::qserver {
namespace {

// Answers "wait" to all, once it is let.
class SlowAllocator final : public AllocatorLink {
 public:
  explicit SlowAllocator(Loop& loop) : changed(loop) {}
  awaitable<absl::StatusOr<proto::DecideReply>> Decide(proto::DecideRequest request) override {
    ++asked;
    while (is_thinking) {
      co_await changed.Wait();
    }
    proto::DecideReply reply;
    for (const proto::Demand& demand : request.pending()) {
      proto::Decision& decision = *reply.add_decision();
      decision.set_job_id(demand.job_id());
      decision.mutable_wait()->set_resource("R");
      decision.mutable_wait()->set_reason("waits");
    }
    co_return reply;
  }
  awaitable<absl::StatusOr<proto::InventoryReply>> Inventory() override {
    co_return proto::InventoryReply();
  }

  Signal changed;
  bool is_thinking = true;
  int asked = 0;
};

class ConductorTest : public ::testing::Test {
 protected:
  ConductorTest() : spool_(MakeDirectory() + "/spool"), allocator_(loop_) {
    CHECK(spool_.Prepare().ok());
    store_ = *EventStore::Open(loop_, directory_ + "/events.db");
    conductor_ = std::make_unique<Conductor>(loop_, *store_, spool_, allocator_, TaskSettings{}, 0);
    CHECK(conductor_->Restore().ok());
    conductor_->Run();
  }
  ~ConductorTest() override { std::filesystem::remove_all(directory_); }

  std::string MakeDirectory() {
    char name[] = "/tmp/sekisho-conductor-XXXXXX";
    return directory_ = mkdtemp(name);
  }
  void Submit(const std::string& account, const std::string& rsl = "&(executable=/bin/a)") {
    Admitted admitted;
    admitted.job_id = "aaaaaaaaaaaaa";
    admitted.submitted.set_rsl(rsl);
    admitted.submitted.set_account(account);
    admitted.submitted.set_subject("/CN=Taro");
    admitted.demand = MakeDemand(admitted.job_id, *rsl::ParseAndDescribe(rsl, {}), 0);
    proto::RequestBody body;
    body.mutable_submit()->set_rsl(rsl);
    admitted.asked = AskedBy(body.submit());
    co_spawn(loop_, conductor_->Submit(std::move(admitted)),
             [this](const std::exception_ptr&, absl::StatusOr<bool> answer) {
               answers_.push_back(std::move(answer));
             });
    loop_.poll();
  }
  void RunUntil(const std::function<bool()>& is_so) {
    while (!is_so()) {
      ASSERT_GT(loop_.run_one_for(std::chrono::seconds(20)), 0u);
    }
  }
  // Events of the job that are on the disk.
  size_t EventsOnDisk() {
    size_t count = 0;
    co_spawn(loop_, CountEvents(count), detached);
    RunUntil([&] { return count > 0; });
    return count - 1;
  }
  awaitable<void> CountEvents(size_t& one_more) {
    CHECK((co_await store_->Flush()).ok());
    const auto rows = co_await store_->Read(std::string("aaaaaaaaaaaaa"));
    one_more = rows->size() + 1;
  }
  void Decide() {
    allocator_.is_thinking = false;
    allocator_.changed.Notify();
  }

  std::string directory_;
  Loop loop_{1};
  Spool spool_;
  SlowAllocator allocator_;
  std::unique_ptr<EventStore> store_;
  std::unique_ptr<Conductor> conductor_;
  std::vector<absl::StatusOr<bool>> answers_;
};

TEST_F(ConductorTest, TheSameRequestTwiceWhileTheAllocatorThinksIsOneJob) {
  Submit("taro");
  ASSERT_EQ(allocator_.asked, 1);
  Submit("taro");
  EXPECT_TRUE(answers_.empty());

  Decide();
  RunUntil([&] { return answers_.size() == 2; });

  ASSERT_TRUE(answers_[0].ok() && answers_[1].ok());
  EXPECT_NE(*answers_[0], *answers_[1]);  // one made the job, the other is its repeat
  EXPECT_EQ(conductor_->queue().pending_count(), 1u);
}

TEST_F(ConductorTest, TheSameRequestIdForAnotherAccountOrOtherRslIsRefused) {
  Submit("taro");
  Submit("guest");
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(absl::IsAlreadyExists(answers_[0].status()));

  Decide();
  RunUntil([&] { return answers_.size() == 2; });
  Submit("guest");
  Submit("taro", "&(executable=/bin/b)");

  ASSERT_EQ(answers_.size(), 4u);
  EXPECT_TRUE(answers_[1].ok());
  EXPECT_TRUE(absl::IsAlreadyExists(answers_[2].status()));
  EXPECT_TRUE(absl::IsAlreadyExists(answers_[3].status()));
}

TEST_F(ConductorTest, WhatIsForgottenGoesFromTheDiskWithItsOutput) {
  allocator_.is_thinking = false;
  Submit("taro");
  RunUntil([&] { return answers_.size() == 1; });
  ASSERT_TRUE(spool_.Append("aaaaaaaaaaaaa", 0, 0, 0, "output").ok());
  const int64_t later = Conductor::NowMs() + 60'000;

  conductor_->ForgetEndedBefore(later);
  EXPECT_GT(EventsOnDisk(), 0u) << "it has not ended";

  conductor_->Change([](Queue& queue) { return *queue.Cancel("aaaaaaaaaaaaa", "", Conductor::NowMs()); });
  EXPECT_GT(EventsOnDisk(), 0u);
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/spool/aaaaaaaaaaaaa"));
  conductor_->ForgetEndedBefore(later);

  EXPECT_EQ(EventsOnDisk(), 0u);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/spool/aaaaaaaaaaaaa"));
  EXPECT_EQ(conductor_->queue().Find("aaaaaaaaaaaaa"), nullptr);
}

}  // namespace
}  // namespace sekisho::qserver
