// SPDX-License-Identifier: Apache-2.0
#include "client/legacy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using ::testing::ElementsAre;

TEST(Legacy, SingleDashWordsBecomeLongOptions) {
  const auto line = Rewrite("sekisho", {"run", "-dryrun", "-r", "siteA", "-np", "4"});

  EXPECT_THAT(line.arguments, ElementsAre("run", "--dry-run", "-r", "siteA", "--count", "4"));
}

TEST(Legacy, CalledAsGlobusrunTheVerbIsUnderstood) {
  EXPECT_THAT(Rewrite("/usr/bin/globusrun", {"-status", "x"}).arguments,
              ElementsAre("globusrun", "--status", "x"));
}

TEST(Legacy, TheUsersCommandIsLeftAlone) {
  const auto line = Rewrite("sekisho", {"run", "-r", "a", "--", "prog", "-np", "--", "x"});

  EXPECT_TRUE(line.has_command);
  EXPECT_THAT(line.arguments, ElementsAre("run", "-r", "a"));
  EXPECT_THAT(line.command, ElementsAre("prog", "-np", "--", "x"));
}

TEST(Legacy, RankmapHasItsOwnWords) {
  EXPECT_THAT(Rewrite("sekisho", {"rankmap", "eval", "-nw", "torus:4"}).arguments,
              ElementsAre("rankmap", "eval", "--network", "torus:4"));
}

TEST(Legacy, OtherVerbsAreNotTouched) {
  EXPECT_THAT(Rewrite("sekisho", {"status", "-np"}).arguments, ElementsAre("status", "-np"));
}

TEST(Legacy, TakesTheWordsOfMpirunUntilItsProgramBegins) {
  const CommandLine line = Rewrite("sekisho", {"mpirun", "-np", "4", "-machinefile", "m", "-x", "A=1", "./app",
                                               "-np", "--", "x"});

  EXPECT_EQ(line.arguments,
            (std::vector<std::string>{"mpirun", "--np", "4", "--machinefile", "m", "-x", "A=1"}));
  EXPECT_EQ(line.command, (std::vector<std::string>{"./app", "-np", "--", "x"}));
}

}  // namespace
}  // namespace sekisho::client
