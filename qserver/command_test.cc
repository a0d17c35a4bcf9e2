// SPDX-License-Identifier: Apache-2.0
#include "qserver/command.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/eventually.h"

namespace sekisho::qserver {
namespace {

// Whether it still runs; one that has ended may be waited for by nobody.
bool Runs(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string number, name, state;
  return file >> number >> name >> state && state != "Z";
}

TEST(Command, WhatRunsForTooLongIsKilledWithAllThatItHasStarted) {
  Loop loop;
  Command command;
  command.words = {"/bin/sh", "-c", "sleep 300 & echo $!; wait"};
  command.environment = {"PATH=/usr/bin:/bin"};
  command.limit = std::chrono::milliseconds(200);
  std::optional<CommandEnd> end;
  co_spawn(loop, RunCommand(std::move(command)),
           [&](const std::exception_ptr&, absl::StatusOr<CommandEnd> result) {
             if (result.ok()) {
               end = *std::move(result);
             }
           });
  loop.run();

  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 128 + 9);
  const std::string child = end->output.substr(0, end->output.find('\n'));
  ASSERT_FALSE(child.empty());
  EXPECT_TRUE(test::Eventually([&] { return !Runs(child); })) << child;
}

}  // namespace
}  // namespace sekisho::qserver
