// SPDX-License-Identifier: Apache-2.0
#include "client/world/build.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rsl/job_description.h"

namespace sekisho::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class BuildTest : public ::testing::Test {
 protected:
  BuildTest() : folder_(std::filesystem::temp_directory_path() / ("sekisho-build-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~BuildTest() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }

  const std::filesystem::path folder_;
};

TEST_F(BuildTest, TheSameContentHasTheSameSumWheneverItWasTouched) {
  Write("app.c", "int main() { return 0; }\n");
  const auto before = Sources::Pack(folder_, "app");
  std::filesystem::last_write_time(folder_ / "app.c", std::filesystem::file_time_type());
  const auto touched = Sources::Pack(folder_, "app");
  Write("app.c", "int main() { return 1; }\n");
  const auto changed = Sources::Pack(folder_, "app");

  ASSERT_TRUE(before.ok() && touched.ok() && changed.ok()) << before.status();
  EXPECT_EQ(before->sum(), touched->sum());
  EXPECT_NE(before->sum(), changed->sum());
}

TEST_F(BuildTest, WhatABuildHasLeftIsNoSource) {
  Write("app.c", "int main() { return 0; }\n");
  std::filesystem::create_directory(folder_ / "src");
  Write("src/app", "a source that is called as the program\n");
  const auto clean = Sources::Pack(folder_, "./app");
  for (const char* name : {"app", "app.o", "src/libx.a", "src/libx.so"}) {
    Write(name, "stale");
  }
  const auto built = Sources::Pack(folder_, "./app");
  Write("src/app", "another\n");
  const auto changed = Sources::Pack(folder_, "./app");

  ASSERT_TRUE(clean.ok() && built.ok() && changed.ok()) << clean.status() << built.status();
  EXPECT_EQ(clean->sum(), built->sum());
  EXPECT_NE(clean->sum(), changed->sum());
}

TEST_F(BuildTest, ThePackedFileIsNowhereToBeLeft) {
  Write("app.c", "int main() { return 0; }\n");
  const auto temporary = folder_ / "tmp";
  std::filesystem::create_directory(temporary);
  setenv("TMPDIR", temporary.c_str(), 1);
  const auto sources = Sources::Pack(folder_, "app");
  unsetenv("TMPDIR");

  ASSERT_TRUE(sources.ok()) << sources.status();
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  EXPECT_TRUE(std::ifstream(sources->archive()).good());
}

TEST_F(BuildTest, WhatIsNoFolderIsRefused) {
  EXPECT_THAT(std::string(Sources::Pack(folder_ / "none", "app").status().message()), HasSubstr("expected a folder"));
}

TEST_F(BuildTest, TheHomeIsSentOnlyIfItIsNamed) {
  const std::string home = std::getenv("HOME");
  const auto before = std::filesystem::current_path();
  setenv("HOME", folder_.c_str(), 1);
  std::filesystem::current_path(folder_);
  const auto by_chance = Sources::Pack(".", "app");
  const auto by_name = Sources::Pack(folder_, "app");
  std::filesystem::current_path(before);
  setenv("HOME", home.c_str(), 1);

  EXPECT_THAT(std::string(by_chance.status().message()), HasSubstr("this is your home"));
  EXPECT_TRUE(by_name.ok()) << by_name.status();
}

TEST(Build, ItsPlaceIsThatOfContentCommandAndArchitecture) {
  const Build build = {"make app", "/tmp/x", "abc", "x86_64"};
  Build other = build;

  EXPECT_THAT(PlaceOf(build), StartsWith(".sekisho/builds/"));
  other.archive = "/tmp/y";
  EXPECT_EQ(PlaceOf(other), PlaceOf(build));
  other.command = "make -j app";
  EXPECT_NE(PlaceOf(other), PlaceOf(build));
  other = build;
  other.architecture = "aarch64";
  EXPECT_NE(PlaceOf(other), PlaceOf(build));
  other = build;
  other.sum = "abd";
  EXPECT_NE(PlaceOf(other), PlaceOf(build));
}

TEST(Build, ItsJobHasTheCommandAsOneWordAndTheSourcesWithIt) {
  const auto job = rsl::ParseAndDescribe(BuildRsl({"make CC='gcc -O2' \"app\" $(X)", "/tmp/a b", "abc", "x86_64"}, "nonce"),
                                         {{"HOME", "/h"}});

  ASSERT_TRUE(job.ok()) << job.error().ToString();
  ASSERT_EQ(job->arguments.size(), 6u);
  EXPECT_EQ(job->arguments[4], "make CC='gcc -O2' \"app\" $(X)");
  ASSERT_EQ(job->file_stage_in.size(), 1u);
  EXPECT_EQ(job->file_stage_in[0].from, "/tmp/a b");
  EXPECT_EQ(job->file_stage_in[0].to, job->arguments[5]);
  EXPECT_EQ(job->file_clean_up, std::vector<std::string>{job->arguments[5]});
}

TEST(Build, ASiteHasOneArchitectureOrIsRefused) {
  proto::SiteInfo site;
  site.set_site("siteA");
  EXPECT_THAT(std::string(ArchitectureOf(site).status().message()), HasSubstr("no node is up"));
  for (const char* architecture : {"x86_64", "x86_64", "aarch64"}) {
    proto::NodeInfo& node = *site.add_node();
    node.set_is_up(true);
    node.set_architecture(architecture);
  }
  EXPECT_THAT(std::string(ArchitectureOf(site).status().message()), HasSubstr("aarch64 and x86_64"));
  site.mutable_node(2)->set_is_up(false);  // a node that is down does not count
  EXPECT_EQ(*ArchitectureOf(site), "x86_64");
}

}  // namespace
}  // namespace sekisho::client
