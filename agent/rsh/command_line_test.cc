// SPDX-License-Identifier: Apache-2.0
#include "agent/rsh/command_line.h"

#include <gtest/gtest.h>

namespace sekisho::agent::rsh {
namespace {

TEST(CommandLine, JoinsTheWordsAsSshDoes) {
  const CommandLine expected{"n2", "echo  'a b' ; exit 3", false};

  EXPECT_EQ(ParseCommandLine({"n2", "echo", " 'a b'", ";", "exit 3"}), expected);
}

TEST(CommandLine, PassesOverWhatConcernsSshOnly) {
  const CommandLine expected{"n2", "orted -mca x y", false};

  EXPECT_EQ(ParseCommandLine({"-x", "n2", "orted", "-mca", "x", "y"}), expected);
  EXPECT_EQ(ParseCommandLine({"-o", "BatchMode=yes", "-p22", "-qTx", "-l", "alice", "n2", "orted",
                              "-mca", "x", "y"}),
            expected);
  EXPECT_EQ(ParseCommandLine({"--", "alice@n2", "orted", "-mca", "x", "y"}), expected);
}

TEST(CommandLine, KnowsThatNoInputIsWanted) {
  EXPECT_TRUE(ParseCommandLine({"-n", "n2", "true"})->no_input);
  EXPECT_TRUE(ParseCommandLine({"-xn", "n2", "true"})->no_input);
  EXPECT_FALSE(ParseCommandLine({"-l", "n", "n2", "true"})->no_input);
  EXPECT_FALSE(ParseCommandLine({"n2", "cat", "-n"})->no_input);
}

TEST(CommandLine, HostAndCommandMustBeThere) {
  EXPECT_FALSE(ParseCommandLine({}));
  EXPECT_FALSE(ParseCommandLine({"n2"}));
  EXPECT_FALSE(ParseCommandLine({"-l", "alice"}));
  EXPECT_FALSE(ParseCommandLine({"-l"}));
  EXPECT_FALSE(ParseCommandLine({"alice@", "true"}));
}

}  // namespace
}  // namespace sekisho::agent::rsh
