// SPDX-License-Identifier: Apache-2.0
#include "agent/spooled_output.h"

#include <gtest/gtest.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace sekisho::agent {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr size_t kMiB = 1 << 20;

class SpooledOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/sekisho-spool-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    path_ = path;
    directory_ = std::make_unique<TaskDirectory>(path_);
    outbox_.Connect([this](proto::AgentMessage message) {
      EXPECT_EQ(message.output().offset(), server_.size());
      server_ += message.output().data();
    });
    output_ = NewAgents();
  }
  void TearDown() override {
    output_.reset();
    directory_.reset();
    fs::remove_all(path_);
  }

  std::unique_ptr<SpooledOutput> NewAgents() {
    return std::make_unique<SpooledOutput>(*directory_, proto::TaskKey(), proto::OutputChunk::STDOUT,
                                           true, 0, outbox_);
  }
  std::string File() const { return path_ + "/" + task::kStdoutFile; }
  void Write(size_t size, char c) { std::ofstream(File(), std::ios::app) << std::string(size, c); }
  char FirstByte() const { return static_cast<char>(std::ifstream(File()).get()); }

  // All that is there goes to the server, which takes it at `now`.
  void TakeAll(SpooledOutput::Clock::time_point now) {
    size_t before = 0;
    do {
      before = server_.size();
      output_->Pump();
      output_->Taken(server_.size(), now);
    } while (server_.size() != before);
  }
  // The server has lost what is beyond.
  void ResumeAt(size_t offset) {
    server_.resize(offset);
    output_->Recall();
    output_->Resume(offset);
  }
  // 8 of 9 MiB, so many steps.
  void WriteAndFree() {
    Write(9 * kMiB, 'x');
    TakeAll(start_);
    output_->Free(start_ + SpooledOutput::kKeptFor);
    ASSERT_EQ(FirstByte(), '\0');
  }
  void ExpectAWordForWhatIsLost(size_t from) {
    ASSERT_EQ(server_.size(), 9 * kMiB);
    EXPECT_EQ(server_.find('\0'), std::string::npos);
    EXPECT_NE(server_.find("[output lost: ", from), std::string::npos);
    EXPECT_EQ(server_.find('x', from), 8 * kMiB);
    EXPECT_TRUE(server_.substr(8 * kMiB) == std::string(kMiB, 'x'));
  }

  const SpooledOutput::Clock::time_point start_ = SpooledOutput::Clock::now();
  std::string path_;
  std::string server_;  // what it has
  Outbox outbox_;
  std::unique_ptr<TaskDirectory> directory_;
  std::unique_ptr<SpooledOutput> output_;
};

TEST_F(SpooledOutputTest, IsGivenBackAWhileAfterItWasTaken) {
  Write(9 * kMiB, 'x');
  TakeAll(start_);

  output_->Free(start_ + SpooledOutput::kKeptFor - 1s);
  EXPECT_EQ(FirstByte(), 'x');
  output_->Free(start_ + SpooledOutput::kKeptFor);
  EXPECT_EQ(FirstByte(), '\0');
  EXPECT_EQ(fs::file_size(File()), 9 * kMiB);
}

TEST_F(SpooledOutputTest, WhatTheServerLosesBeforeThatIsSentAgain) {
  Write(9 * kMiB, 'x');
  TakeAll(start_);

  ResumeAt(1000);
  output_->Free(start_ + SpooledOutput::kKeptFor);
  TakeAll(start_ + SpooledOutput::kKeptFor);

  EXPECT_TRUE(server_ == std::string(9 * kMiB, 'x'));
}

TEST_F(SpooledOutputTest, WhatTheServerLosesAfterThatIsSaidToBeLost) {
  WriteAndFree();

  ResumeAt(1000);
  TakeAll(start_ + SpooledOutput::kKeptFor);

  EXPECT_EQ(server_.find_first_not_of('x'), 1000U);
  ExpectAWordForWhatIsLost(1000);
}

TEST_F(SpooledOutputTest, SoItIsByTheNextAgent) {
  WriteAndFree();

  output_ = NewAgents();
  ResumeAt(0);
  TakeAll(start_);

  ExpectAWordForWhatIsLost(0);
}

TEST_F(SpooledOutputTest, NothingIsLostOfWhatATaskWritesThatHasEmptiedItsOutput) {
  WriteAndFree();

  fs::resize_file(File(), 0);
  output_->Pump();
  Write(100, 'y');
  TakeAll(start_ + SpooledOutput::kKeptFor);

  EXPECT_TRUE(server_ == std::string(9 * kMiB, 'x') + std::string(100, 'y'));
}

TEST_F(SpooledOutputTest, WhatATaskEmptiesBeforeTheServerHasItIsSaidToBeLost) {
  Write(1000, 'x');
  output_->Pump();
  fs::resize_file(File(), 0);
  output_->Pump();
  Write(100, 'y');

  ResumeAt(400);  // the rest was on its way
  TakeAll(start_);

  ASSERT_EQ(server_.size(), 1100U);
  EXPECT_EQ(server_.find_first_not_of('x'), 400U);
  EXPECT_NE(server_.find("[output lost: ", 400), std::string::npos);
  EXPECT_EQ(server_.substr(1000), std::string(100, 'y'));
}

}  // namespace
}  // namespace sekisho::agent
