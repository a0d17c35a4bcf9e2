// SPDX-License-Identifier: Apache-2.0
#include "common/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/job.pb.h"

namespace sekisho {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  proto::NodeInfo info;
  return ParseConfigInto(text, "x.json", info).ToString();
}

TEST(Config, ReadsJsonWithComments) {
  proto::NodeInfo info;

  ASSERT_TRUE(ParseConfigInto("{ // a node\n \"name\": \"n1\", /* cores */ \"processors\": 4}", "x", info).ok());

  EXPECT_EQ(info.name(), "n1");
  EXPECT_EQ(info.processors(), 4);
}

TEST(Config, NamesLineAndColumnOfASyntaxError) {
  EXPECT_THAT(ErrorOf("{\n  \"name\": \"n1\"\n  \"load\": 1\n}"), HasSubstr("x.json:3:"));
}

TEST(Config, SaysWhatIsWrongWithASyntaxError) {
  EXPECT_THAT(ErrorOf("junk"), HasSubstr("x.json:1:1: invalid literal; last read: 'j'"));
  EXPECT_THAT(ErrorOf("{\"load\": 1,}"), HasSubstr("unexpected '}'; expected string literal"));
}

TEST(Config, NamesAnUnknownKey) {
  EXPECT_THAT(ErrorOf(R"({"nmae": "n1"})"), HasSubstr("nmae"));
  EXPECT_THAT(ErrorOf(R"({"nmae": "n1"})"), HasSubstr("unknown key"));
}

TEST(Config, NamesAKeyOfTheWrongType) {
  EXPECT_THAT(ErrorOf(R"({"processors": "many"})"), HasSubstr("processors"));
}

TEST(Config, RefusesWhatIsNoObject) { EXPECT_THAT(ErrorOf("[1]"), HasSubstr("expected an object")); }

TEST(Config, AMissingFileIsNamed) {
  EXPECT_THAT(LoadConfig<proto::NodeInfo>("/nonexistent/x.json").status().ToString(),
              HasSubstr("/nonexistent/x.json: cannot open the configuration file: No such file or directory"));
}

TEST(Config, ADirectoryIsNoFile) {
  EXPECT_THAT(LoadConfig<proto::NodeInfo>("/tmp").status().ToString(), HasSubstr("saw a directory"));
}

}  // namespace
}  // namespace sekisho
