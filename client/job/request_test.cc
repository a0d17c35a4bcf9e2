// SPDX-License-Identifier: Apache-2.0
#include "client/job/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/refusal.h"
#include "rsl/job_description.h"

namespace sekisho::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

rsl::JobDescription Described(const JobOptions& options) {
  const auto text = ToRsl(options);
  EXPECT_TRUE(text.ok()) << text.status();
  const auto job = rsl::ParseAndDescribe(*text, {{"HOME", "/h"}});
  EXPECT_TRUE(job.ok()) << *text << ": " << job.error().ToString();
  return *job;
}

TEST(Request, EveryArgumentArrivesAsItWasTyped) {
  JobOptions options;
  options.command = {"/bin/echo", "a b", "it's \"quoted\"", "$(HOME)", "", "(*x*)", "#"};

  const auto job = Described(options);

  EXPECT_EQ(job.executable, "/bin/echo");
  EXPECT_THAT(job.arguments, ElementsAre("a b", "it's \"quoted\"", "$(HOME)", "", "(*x*)", "#"));
}

TEST(Request, OptionsBecomeAttributes) {
  JobOptions options;
  options.command = {"x"};
  options.count = 4;
  options.host_count = 2;
  options.environment = {"A=1", "B=x=y"};
  options.max_wall_time = 5;
  options.clauses = {"(arch=amd64)"};

  const auto job = Described(options);

  EXPECT_EQ(job.count, 4);
  EXPECT_EQ(job.host_count, 2);
  ASSERT_EQ(job.environment.size(), 2u);
  EXPECT_EQ(job.environment[1].value, "x=y");
  EXPECT_EQ(job.max_wall_time_minutes, 5);
  EXPECT_EQ(job.conditions.size(), 1u);
}

TEST(Request, RefusesNoCommandAndAHalfVariable) {
  EXPECT_THAT(ToRsl({}).status().ToString(), HasSubstr("no command"));
  EXPECT_THAT(Remedy(ToRsl({}).status()), HasSubstr("-- /bin/hostname"));
  JobOptions options;
  options.command = {"x"};
  options.environment = {"A"};
  EXPECT_THAT(ToRsl(options).status().ToString(), HasSubstr("'A'"));
}

TEST(Script, TakesOptionsBeforeTheFirstCommand) {
  const auto script = ParseScript(
      "#!/bin/bash\n# comment\n#SEKISHO -r siteA --count 4 # four\n#SEKISHO --env 'A=b c'\necho hi\n#SEKISHO --x\n",
      "job.sh", {"one"});

  ASSERT_TRUE(script.ok()) << script.status();
  EXPECT_THAT(script->arguments, ElementsAre("-r", "siteA", "--count", "4", "--env", "A=b c"));
  EXPECT_EQ(script->command[0], "/bin/bash");
  EXPECT_EQ(script->command[1], "-c");
  EXPECT_EQ(script->command[3], "job.sh");
  EXPECT_EQ(script->command[4], "one");
}

TEST(Script, NamesTheLineOfAnOpenQuoteAndOfAnUnknownShell) {
  EXPECT_THAT(ParseScript("#!/bin/sh\n#SEKISHO --env 'A\n", "j", {}).status().ToString(), HasSubstr("j:2:"));
  const absl::Status perl = ParseScript("#!/usr/bin/perl\n", "j", {}).status();
  EXPECT_THAT(perl.ToString(), HasSubstr("perl"));
  EXPECT_THAT(Remedy(perl), HasSubstr("submit -r SITE -- j"));
}

TEST(Script, RefusesAProgramAndAnOverlongText) {
  EXPECT_FALSE(ParseScript(std::string("\x7f" "ELF\0", 5), "j", {}).ok());
  EXPECT_FALSE(ParseScript(std::string(kScriptBytesMax + 1, '\n'), "j", {}).ok());
}

}  // namespace
}  // namespace sekisho::client
