// SPDX-License-Identifier: Apache-2.0
#include "common/identity/gridmap.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

using ::testing::HasSubstr;

Gridmap Parsed(std::string_view text) {
  absl::StatusOr<Gridmap> map = Gridmap::Parse(text, "grid-mapfile");
  EXPECT_TRUE(map.ok()) << map.status();
  return *std::move(map);
}

TEST(Gridmap, TakesEveryFormOfALine) {
  const Gridmap map = Parsed(
      "# a comment\n"
      "\n"
      "   \t \n"
      "\"/C=JP/O=Grid/CN=Taro\" taro\n"
      "  /C=JP/O=Grid/CN=Jiro   jiro,guest , ops\r\n"
      "\"/C=JP/O=Grid/CN=say \\\"hi\\\"\" hi # behind the accounts\n"
      "\"/C=JP/O=Grid/CN=back\\\\slash\" back\n"
      "\"/C=JP/O=Grid/CN=\\xE6\\x9D\\xB1\" higashi\n"
      "\"/O=Grid/Email=a@b\" mail");  // no newline at the end

  EXPECT_EQ(*map.Lookup("/C=JP/O=Grid/CN=Taro"), "taro");
  EXPECT_EQ(*map.Lookup("/C=JP/O=Grid/CN=Jiro"), "jiro");
  EXPECT_EQ(*map.Lookup("/C=JP/O=Grid/CN=Jiro", "ops"), "ops");
  EXPECT_EQ(*map.Lookup("/C=JP/O=Grid/CN=say \"hi\""), "hi");
  EXPECT_EQ(*map.Lookup("/C=JP/O=Grid/CN=back\\x5Cslash"), "back");
  EXPECT_EQ(*map.Lookup("/C=JP/O=Grid/CN=\u6771"), "higashi");
  EXPECT_EQ(*map.Lookup("/O=Grid/emailAddress=a@b"), "mail");
  EXPECT_EQ(map.size(), 6u);
}

TEST(Gridmap, TheFirstOfTwoLinesCounts) {
  const Gridmap map = Parsed("\"/CN=a\" first\n\"/CN=a\" second\n");

  EXPECT_EQ(*map.Lookup("/CN=a"), "first");
  EXPECT_FALSE(map.Lookup("/CN=a", "second").ok());
}

TEST(Gridmap, RefusesWhoIsNotMappedAndSaysWhere) {
  const Gridmap map = Parsed("\n\"/CN=a\" alice\n");

  EXPECT_TRUE(absl::IsPermissionDenied(map.Lookup("/CN=b").status()));
  EXPECT_THAT(map.Lookup("/CN=b").status().ToString(), HasSubstr("/CN=b is not mapped"));
  EXPECT_THAT(map.Lookup("/CN=a", "root").status().ToString(),
              HasSubstr("/CN=a may not use the account root (grid-mapfile:2"));
  EXPECT_FALSE(map.Lookup("/CN=a/CN=1").ok());  // a proxy's own name is no identity
  EXPECT_FALSE(map.Lookup("/cn=a").ok());
  EXPECT_FALSE(map.Lookup("").ok());
}

TEST(Gridmap, RefusesPoolsWhenTheyAreUsed) {
  const Gridmap map = Parsed("\"/CN=a\" .pool\n\"/CN=b\" bob,.pool\n");

  EXPECT_THAT(map.Lookup("/CN=a").status().ToString(),
              HasSubstr("grid-mapfile:1 maps /CN=a to the account pool .pool"));
  EXPECT_EQ(*map.Lookup("/CN=b"), "bob");
  EXPECT_FALSE(map.Lookup("/CN=b", ".pool").ok());
}

TEST(Gridmap, NamesTheLineOfAnError) {
  struct Row {
    std::string line;
    std::string says;
  };
  const Row rows[] = {
      {"\"/CN=a\"", "expected an account name, saw nothing"},
      {"\"/CN=a\" ", "expected an account name, saw nothing"},
      {"\"/CN=a\" a,", "expected an account name, saw nothing"},
      {"\"/CN=a\" ,a", "expected an account name, saw nothing"},
      {"\"/CN=a", "expected a closing \""},
      {"\"/CN=a\"b", "expected a blank after the quoted subject, saw b"},
      {"\"/CN=a\\q\" a", "saw \\q"},
      {"\"/CN=a\\", "saw the end of the line"},
      {"\"/CN=a\\x4\" a", "saw \\x"},
      {"/CN=two words a", "saw \"a\""},
      {"\"/CN=a\" a b", "expected a comma or the end of the line"},
      {"\"/CN=a\" a:b", "expected an account name, saw \"a:b\""},
      {"\"/CN=a\" -f", "expected an account name, saw \"-f\""},
      {"CN=a a", "expected a subject like"},
      {"\"\" a", "expected a subject like"},
      {"\"/CN=a\" " + std::string(300, 'a'), "expected an account name"},
      {"\"/CN=" + std::string(Gridmap::kLineBytesMax, 'a') + "\" a", "expected a line of at most"},
      {std::string("\"/CN=a\0b\" a", 11), "a NUL byte"},
  };
  for (const Row& row : rows) {
    const absl::Status status = Gridmap::Parse("# first\n" + row.line + "\n", "map").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << row.line;
    EXPECT_THAT(status.ToString(), HasSubstr("map:2: "));
    EXPECT_THAT(status.ToString(), HasSubstr(row.says));
  }
}

TEST(Gridmap, IsFoundByTheEnvironmentElseByWhoRuns) {
  setenv("GRIDMAP", "/some/where", 1);
  EXPECT_EQ(DefaultGridmapPath(), "/some/where");
  unsetenv("GRIDMAP");
  EXPECT_THAT(DefaultGridmapPath(),
              ::testing::EndsWith(geteuid() == 0 ? "/grid-mapfile" : "/.gridmap"));
}

TEST(Gridmap, LoadsAFileAndNamesIt) {
  const test::TemporaryDirectory directory;
  test::WriteFile(directory.File("map"), "\"/CN=a\" alice\n");

  EXPECT_EQ(*Gridmap::Load(directory.File("map"))->Lookup("/CN=a"), "alice");
  EXPECT_TRUE(absl::IsNotFound(Gridmap::Load(directory.File("none")).status()));
}

}  // namespace
}  // namespace sekisho::identity
