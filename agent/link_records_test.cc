// SPDX-License-Identifier: Apache-2.0
#include "agent/link_records.h"

#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sekisho::agent {
namespace {

class LinkRecordsTest : public testing::Test {
 protected:
  LinkRecordsTest() : path_(Made()), directory_(path_), watcher_(loop_) {
    mkdir((path_ + "/files").c_str(), 0700);
    Write("");
    spec_.job_id = "abcdefghijklm";
    spec_.task = 3;
    spec_.uid = getuid();
    outbox_.Connect([this](proto::AgentMessage message) { sent_.push_back(std::move(message)); });
  }
  ~LinkRecordsTest() override { RemoveTaskDirectory(path_); }

  static std::string Made() {
    std::string path = testing::TempDir() + "/links-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    mkdir((path + "/0").c_str(), 0700);
    return path + "/0";
  }
  std::string File() const { return path_ + "/files/links"; }
  void Write(const std::string& text) { std::ofstream(File(), std::ios::app) << text; }

  const std::string path_;
  Loop loop_;
  TaskDirectory directory_;
  task::Spec spec_;
  Watcher watcher_;
  Outbox outbox_;
  std::vector<proto::AgentMessage> sent_;
};

TEST_F(LinkRecordsTest, SendWhatIsNewAndAllOfItAfterAWelcome) {
  LinkRecords records(directory_, spec_, watcher_, outbox_);

  Write("direct 10.1.0.11:1\n");
  records.Pump();
  records.Pump();
  Write("relayed 10.2.0.11:1\n");
  records.Pump();
  records.Resume();

  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_EQ(sent_[0].links().task().task(), 3);
  EXPECT_EQ(sent_[0].links().data(), "direct 10.1.0.11:1\n");
  EXPECT_EQ(sent_[1].links().offset(), 19u);
  EXPECT_EQ(sent_[1].links().data(), "relayed 10.2.0.11:1\n");
  EXPECT_EQ(sent_[2].links().offset(), 0u);
  EXPECT_EQ(sent_[2].links().data().size(), 39u);
}

TEST_F(LinkRecordsTest, StopWhereTheyBecomeTooMany) {
  LinkRecords records(directory_, spec_, watcher_, outbox_);

  Write(std::string(300 * 1024, 'x'));
  records.Pump();
  records.Pump();

  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].links().data().size(), 256u * 1024);
}

TEST_F(LinkRecordsTest, AreNotWhatTheAccountHasPutInTheirPlace) {
  LinkRecords records(directory_, spec_, watcher_, outbox_);

  unlink(File().c_str());
  ASSERT_EQ(symlink("/etc/passwd", File().c_str()), 0);
  records.Pump();
  unlink(File().c_str());
  ASSERT_EQ(mkfifo(File().c_str(), 0600), 0);
  records.Pump();
  unlink(File().c_str());
  Write("anybody's");
  spec_.uid = getuid() + 1;
  records.Pump();

  EXPECT_TRUE(sent_.empty());
}

TEST_F(LinkRecordsTest, OfATaskWithoutThemAreNone) {
  unlink(File().c_str());
  LinkRecords records(directory_, spec_, watcher_, outbox_);
  Write("direct 10.1.0.11:1\n");

  records.Pump();

  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace sekisho::agent
