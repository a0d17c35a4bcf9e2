// SPDX-License-Identifier: Apache-2.0
#include "common/daemon.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

namespace sekisho {
namespace {

std::optional<int> Read(const char* word) {
  CLI::App app;
  DaemonCommand command;
  AddDaemonOptions(app, "agent", command);
  const char* words[] = {"sekisho-agent", word};
  return ReadCommandLine(app, 2, const_cast<char**>(words));
}

TEST(ReadCommandLine, GoesOnAfterOneThatIsRight) { EXPECT_EQ(Read("--check"), std::nullopt); }

TEST(ReadCommandLine, EndsWellAfterAnAnswer) {
  EXPECT_EQ(Read("--help"), 0);
  EXPECT_EQ(Read("--version"), 0);
}

TEST(ReadCommandLine, EndsWith64AfterOneThatIsWrong) {
  EXPECT_EQ(Read("--cehck"), 64);
  EXPECT_EQ(Read("--config"), 64) << "which file?";
}

}  // namespace
}  // namespace sekisho
