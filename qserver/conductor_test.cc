// SPDX-License-Identifier: Apache-2.0
// The conductor, with an allocator that takes its time.
#include "qserver/conductor.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include <gtest/gtest.h>

#include "qserver/accounting.h"
#include "qserver/demand.h"
#include "qserver/staging.h"
#include "tests/support/eventually.h"

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
  static Admitted Ask(const std::string& job_id, const std::string& account, const std::string& rsl) {
    Admitted admitted;
    admitted.job_id = job_id;
    admitted.submitted.set_rsl(rsl);
    admitted.submitted.set_account(account);
    admitted.submitted.set_subject("/CN=Taro");
    admitted.demand = MakeDemand(admitted.job_id, *rsl::ParseAndDescribe(rsl, {}), 0);
    proto::RequestBody body;
    body.mutable_submit()->set_rsl(rsl);
    admitted.asked = AskedBy(body.submit());
    return admitted;
  }
  // A job that has ended at that time.
  void AddEnded(const std::string& job_id, bool has_files, int64_t ended_ms, const std::string& account = "taro") {
    Admitted admitted = Ask(job_id, account, "&(executable=/bin/a)");
    admitted.has_stage_in = has_files;
    conductor_->Change([&](Queue& queue) { return queue.Accept(admitted, nullptr, ended_ms); });
    conductor_->Change([&](Queue& queue) { return *queue.Cancel(job_id, "", ended_ms); });
  }
  void Submit(const std::string& account, const std::string& rsl = "&(executable=/bin/a)") {
    Admitted admitted = Ask("aaaaaaaaaaaaa", account, rsl);
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
    co_spawn(loop_, CountEvents(count), Vital("the test"));
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

TEST_F(ConductorTest, FilesThatStayKeepNobodyElsesJob) {
  Staging staging(loop_, *conductor_, Staging::Settings());  // removes nothing: the loop does not run
  conductor_->SetStaging(staging);
  const int64_t now = Conductor::NowMs();
  for (size_t i = 0; i < Conductor::kForgottenAtOnce; ++i) {
    AddEnded("stuck" + std::to_string(i), true, now - 1000);
  }
  AddEnded("plain", false, now);
  conductor_->ForgetEndedBefore(now + 1);
  ASSERT_NE(conductor_->queue().Find("plain"), nullptr);  // the others were first

  conductor_->ForgetEndedBefore(now + 1, Conductor::SteadyMs() + 7'200'000);

  EXPECT_EQ(conductor_->queue().Find("plain"), nullptr);
  EXPECT_NE(conductor_->queue().Find("stuck0"), nullptr);
}

TEST_F(ConductorTest, TriesAgainToRemoveFilesThatStayed) {
  const std::string failed = directory_ + "/failed", room = directory_ + "/room";
  Staging::Settings settings;
  settings.program = directory_ + "/stager";
  std::ofstream(settings.program) << "#!/bin/sh\n"
                                  << "if [ -e " << room << " ]; then\n"
                                  << "  printf '\\000\\000\\000\\002\\052\\000' >&0\n"  // StagerReply.done
                                  << "  exec /bin/cat >/dev/null\n"
                                  << "fi\n"
                                  << "echo x >>" << failed << "\n";
  std::ofstream(failed) << "";
  chmod(directory_.c_str(), 0755);  // root's stagers are never root
  chmod(settings.program.c_str(), 0755);
  chmod(failed.c_str(), 0666);
  Staging staging(loop_, *conductor_, settings);
  conductor_->SetStaging(staging);
  const int64_t now = Conductor::NowMs();
  AddEnded("aaaaaaaaaaaaa", true, now, geteuid() == 0 ? "nobody" : getpwuid(geteuid())->pw_name);
  int64_t steady_ms = Conductor::SteadyMs();
  conductor_->ForgetEndedBefore(now + 1, steady_ms);
  ASSERT_TRUE(test::EventuallyOn(loop_, [&] { return std::filesystem::file_size(failed) > 0; }));
  ASSERT_NE(conductor_->queue().Find("aaaaaaaaaaaaa"), nullptr);

  std::ofstream(room) << "";
  EXPECT_TRUE(test::EventuallyOn(loop_, [&] {
    steady_ms += 3'600'000;
    conductor_->ForgetEndedBefore(now + 1, steady_ms);
    return conductor_->queue().Find("aaaaaaaaaaaaa") == nullptr;
  }));
}

TEST_F(ConductorTest, TheNumberOfAnEndIsStoredOnceItsLineIsOnDisk) {
  std::promise<void> goes_on;
  std::atomic<bool> is_asked = false;
  AccountingFile accounting(directory_ + "/accounting.jsonl", [&is_asked, go = goes_on.get_future().share()](int fd) {
    is_asked = true;
    go.wait();
    return fdatasync(fd);
  });
  ASSERT_TRUE(accounting.Prepare().ok());
  conductor_->SetAccounting(accounting);
  AddEnded("aaaaaaaaaaaaa", false, Conductor::NowMs());
  const std::string last = std::to_string(store_->next_sequence() - 1);
  RunUntil([&] { return is_asked.load(); });
  EXPECT_GT(EventsOnDisk(), 0u);  // with all that was put before
  EXPECT_EQ(*store_->Value("accounted"), "");

  goes_on.set_value();

  RunUntil([&] { return *store_->Value("accounted") == last; });
}

TEST_F(ConductorTest, ALineIsWrittenAgainAfterAPowerCutAndNotAfterAKill) {
  const std::string path = directory_ + "/accounting.jsonl";
  AccountingFile accounting(path, [](int) {
    errno = EIO;
    return -1;
  });
  ASSERT_TRUE(accounting.Prepare().ok());
  conductor_->SetAccounting(accounting);
  AddEnded("aaaaaaaaaaaaa", false, Conductor::NowMs());
  RunUntil([&] { return !store_->Value("accounted_in")->empty(); });
  EXPECT_GT(std::filesystem::file_size(path), 0u);
  std::filesystem::remove(path);  // as if it had been moved away
  const auto added_by_restart = [&] {
    AccountingFile file(path);
    CHECK(file.Prepare().ok());
    Conductor again(loop_, *store_, spool_, allocator_, TaskSettings{}, 0);
    again.SetAccounting(file);
    CHECK(again.Restore().ok());
    return std::filesystem::file_size(path);
  };

  EXPECT_EQ(added_by_restart(), 0u);

  store_->Put("accounted_in", "9000000000000000000 another-boot");
  EXPECT_GT(EventsOnDisk(), 0u);
  EXPECT_GT(added_by_restart(), 0u);
}

}  // namespace
}  // namespace sekisho::qserver
