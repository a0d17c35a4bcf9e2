// SPDX-License-Identifier: Apache-2.0
#include "qserver/accounting.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "common/job_state.h"

namespace sekisho::qserver {
namespace {

using nlohmann::json;

proto::JobEvent At(int64_t time_ms, uint64_t sequence = 0) {
  proto::JobEvent event;
  event.set_job_id("1f2e");
  event.set_time_ms(time_ms);
  event.set_sequence(sequence);
  return event;
}

class AccountingLineTest : public testing::Test {
 protected:
  void SetUp() override {
    proto::JobEvent event = At(1'000'000);
    auto& submitted = *event.mutable_submitted();
    submitted.set_site("siteA");
    submitted.set_subject("/O=Grid/CN=Alice");
    submitted.set_account("alice");
    submitted.set_project("physics");
    submitted.set_executable("/bin/x");
    Take(event);
  }
  void Take(const proto::JobEvent& event) { ASSERT_TRUE(Fold(event, job_).ok()); }
  void Run() {
    proto::JobEvent allocated = At(1'001'000);
    for (const char* node : {"n1", "n1", "n2"}) {
      auto& place = *allocated.mutable_allocated()->add_placement();
      place.set_node(node);
      place.set_processes(2);
    }
    Take(allocated);
    proto::JobEvent started = At(1'002'500);
    started.mutable_task_started()->set_node("n1");
    Take(started);
  }
  json End(proto::JobEvent ended) {
    Take(ended);
    const std::string line = AccountingLine(job_, ended);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    return json::parse(line);
  }

  proto::JobStatus job_;
};

TEST_F(AccountingLineTest, NamesTheHostOfAPilot) {
  proto::JobEvent allocated = At(1'001'000);
  for (const char* node : {"n1.1f2e", "n1.other"}) {
    allocated.mutable_allocated()->add_placement()->set_node(node);
  }
  Take(allocated);

  proto::JobEvent ended = At(1'004'000);
  ended.mutable_ended()->set_state(proto::CANCELLED);
  EXPECT_EQ(End(ended)["nodes"], json({"n1", "n1.other"}));
}

TEST_F(AccountingLineTest, SaysWhoWhatWhereAndHowMuch) {
  Run();
  proto::JobEvent ended = At(1'012'500, 77);
  ended.mutable_ended()->set_state(proto::DONE);
  ended.mutable_ended()->mutable_exit()->set_code(3);
  ended.mutable_ended()->set_cpu_ms(4200);
  ended.mutable_ended()->set_max_rss_kb(2048);

  const json line = End(ended);

  EXPECT_EQ(line["sequence"], 77);
  EXPECT_EQ(line["job"], "siteA/1f2e");
  EXPECT_EQ(line["subject"], "/O=Grid/CN=Alice");
  EXPECT_EQ(line["project"], "physics");
  EXPECT_EQ(line["nodes"], json({"n1", "n2"}));
  EXPECT_EQ(line["processors"], 6);
  EXPECT_EQ(line["submitted"], "1970-01-01T00:16:40.000Z");
  EXPECT_EQ(line["started"], "1970-01-01T00:16:42.500Z");
  EXPECT_EQ(line["wait_s"], 2.5);
  EXPECT_EQ(line["wall_s"], 10);
  EXPECT_EQ(line["processor_s"], 60);
  EXPECT_EQ(line["cpu_s"], 4.2);
  EXPECT_EQ(line["max_rss_mb"], 2);
  EXPECT_EQ(line["state"], "DONE");
  EXPECT_EQ(line["exit_code"], 3);
  EXPECT_EQ(line["signal"], nullptr);
}

TEST_F(AccountingLineTest, AJobThatNeverRanHasWaited) {
  proto::JobEvent ended = At(1'030'000, 5);
  ended.mutable_ended()->set_state(proto::CANCELLED);
  ended.mutable_ended()->set_reason("half a \xc3");

  const json line = End(ended);

  EXPECT_EQ(line["started"], nullptr);
  EXPECT_EQ(line["wait_s"], 30);
  EXPECT_EQ(line["wall_s"], 0);
  EXPECT_EQ(line["exit_code"], nullptr);
  EXPECT_EQ(line["state"], "CANCELLED");
}

class AccountingFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sekisho-accounting-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/accounting.jsonl";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Content() const {
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static std::string Line(int sequence) { return "{\"sequence\":" + std::to_string(sequence) + "}\n"; }

  std::string folder_, path_;
};

TEST_F(AccountingFileTest, EachEndIsThereOnceOverARestart) {
  AccountingFile first(path_);
  ASSERT_TRUE(first.Prepare().ok());
  EXPECT_TRUE(first.Write(3, Line(3)));
  EXPECT_TRUE(first.Write(7, Line(7)));

  AccountingFile second(path_);
  ASSERT_TRUE(second.Prepare().ok());
  for (const int sequence : {3, 7, 9}) {  // as a replay tells them
    EXPECT_TRUE(second.Write(sequence, Line(sequence)));
  }
  EXPECT_EQ(Content(), Line(3) + Line(7) + Line(9));
}

TEST_F(AccountingFileTest, HalfALineOfACrashGoesAndIsWrittenAnew) {
  std::ofstream(path_) << Line(3) << "{\"sequence\":7,\"jo";

  AccountingFile file(path_);
  ASSERT_TRUE(file.Prepare().ok());
  EXPECT_FALSE(file.Wants(3));
  EXPECT_TRUE(file.Write(7, Line(7)));
  EXPECT_EQ(Content(), Line(3) + Line(7));
}

TEST_F(AccountingFileTest, AFileThatWasMovedAwayBeginsAnewAndRepeatsNothing) {
  AccountingFile file(path_);
  ASSERT_TRUE(file.Prepare().ok());
  EXPECT_TRUE(file.Write(3, Line(3)));
  std::filesystem::rename(path_, path_ + ".1");
  EXPECT_TRUE(file.Write(4, Line(4)));
  EXPECT_EQ(Content(), Line(4));

  std::filesystem::remove(path_);
  AccountingFile restarted(path_);
  ASSERT_TRUE(restarted.Prepare().ok());
  restarted.SkipTo(4);  // as the store remembers
  EXPECT_TRUE(restarted.Write(4, Line(4)));
  EXPECT_EQ(Content(), "");
}

TEST_F(AccountingFileTest, LinesWaitInOrderForRoom) {
  AccountingFile file(path_);
  ASSERT_TRUE(file.Prepare().ok());
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);  // nothing can be written there
  EXPECT_FALSE(file.Write(1, Line(1)));
  EXPECT_FALSE(file.Write(2, Line(2)));
  EXPECT_FALSE(file.has_unsynced());
  std::filesystem::remove(path_);
  EXPECT_TRUE(file.Write(3, Line(3)));
  EXPECT_EQ(Content(), Line(1) + Line(2) + Line(3));
}

TEST_F(AccountingFileTest, SyncsWhatWasWrittenAlsoWhereItWasMovedAway) {
  std::vector<size_t> synced;  // sizes
  int result = 0;
  AccountingFile file(path_, [&](int fd) {
    struct stat facts {};
    EXPECT_EQ(fstat(fd, &facts), 0);
    synced.push_back(size_t(facts.st_size));
    return result;
  });
  ASSERT_TRUE(file.Prepare().ok());
  EXPECT_FALSE(file.has_unsynced());
  EXPECT_TRUE(file.Write(3, Line(3)));
  EXPECT_TRUE(file.Write(4, Line(4)));
  std::filesystem::rename(path_, path_ + ".1");
  EXPECT_TRUE(file.Write(5, Line(5)));

  const AccountingFile::Unsynced unsynced = file.TakeUnsynced();
  EXPECT_TRUE(unsynced.sync().ok());

  EXPECT_EQ(unsynced.sequence, 5u);
  EXPECT_THAT(synced, testing::ElementsAre(2 * Line(3).size(), Line(5).size()));
  EXPECT_FALSE(file.has_unsynced());
  EXPECT_TRUE(file.Write(6, Line(6)));
  EXPECT_TRUE(file.has_unsynced());
  result = -1;
  EXPECT_FALSE(file.TakeUnsynced().sync().ok());
}

}  // namespace
}  // namespace sekisho::qserver
