// SPDX-License-Identifier: Apache-2.0
#include "client/build.h"

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
  const auto before = Sources::Pack(folder_);
  std::filesystem::last_write_time(folder_ / "app.c", std::filesystem::file_time_type());
  const auto touched = Sources::Pack(folder_);
  Write("app.c", "int main() { return 1; }\n");
  const auto changed = Sources::Pack(folder_);

  ASSERT_TRUE(before.ok() && touched.ok() && changed.ok()) << before.status();
  EXPECT_EQ(before->sum(), touched->sum());
  EXPECT_NE(before->sum(), changed->sum());
}

TEST_F(BuildTest, ThePackedFileGoesWithItsOwner) {
  std::string archive;
  {
    const auto sources = Sources::Pack(folder_);
    ASSERT_TRUE(sources.ok());
    archive = sources->archive();
    EXPECT_TRUE(std::filesystem::exists(archive));
  }
  EXPECT_FALSE(std::filesystem::exists(archive));
}

TEST_F(BuildTest, WhatIsNoFolderIsRefused) {
  EXPECT_THAT(std::string(Sources::Pack(folder_ / "none").status().message()), HasSubstr("expected a folder"));
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
