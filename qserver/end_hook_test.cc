// SPDX-License-Identifier: Apache-2.0
#include "qserver/end_hook.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

class EndHookTest : public ::testing::Test {
 protected:
  EndHookTest() {
    char name[] = "/tmp/sekisho-hook-XXXXXX";
    folder_ = mkdtemp(name);
    std::ofstream(Program()) << "#!/bin/sh\ncat >> " << folder_ << "/heard\n";
    std::filesystem::permissions(Program(), std::filesystem::perms::owner_all);
  }
  ~EndHookTest() override { std::filesystem::remove_all(folder_); }

  std::string Program() const { return folder_ + "/hook"; }
  std::string Heard() const {
    std::ifstream file(folder_ + "/heard");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // One life: hears of the ends, until the program has heard as much, and that is on disk.
  void Live(const std::vector<uint64_t>& ends, const std::string& until) {
    Loop loop;
    const auto store = *EventStore::Open(loop, folder_ + "/events.db");
    EndHook hook(loop, *store, Program());
    ASSERT_TRUE(hook.Restore().ok());
    for (const uint64_t sequence : ends) {
      if (hook.Wants(sequence)) {
        hook.OnEnd(sequence, std::to_string(sequence) + "\n");
      }
    }
    co_spawn(loop, hook.Run(), Vital("the test"));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto is_over = [&] { return Heard() == until && *store->Value("told_ends") == std::to_string(ends.back()); };
    while (!is_over() && std::chrono::steady_clock::now() < limit) {
      loop.run_for(std::chrono::milliseconds(10));
      loop.restart();
    }
    const auto flush = [&]() -> awaitable<void> { (co_await store->Flush()).IgnoreError(); };  // outlives what it starts
    co_spawn(loop, flush(), [&](std::exception_ptr) { loop.stop(); });
    loop.run();
  }

  std::string folder_;
};

TEST_F(EndHookTest, HearsOfEachEndInOrderAndOnceAlsoOverARestart) {
  Live({5, 7, 9}, "5\n7\n9\n");
  Live({5, 7, 9, 12}, "5\n7\n9\n12\n");

  EXPECT_EQ(Heard(), "5\n7\n9\n12\n");
}

TEST_F(EndHookTest, OneThatFailsHoldsUpNothing) {
  std::ofstream(Program()) << "#!/bin/sh\ncat >> " << folder_ << "/heard\nexit 3\n";
  Live({5, 7}, "5\n7\n");

  EXPECT_EQ(Heard(), "5\n7\n");
}

}  // namespace
}  // namespace sekisho::qserver
