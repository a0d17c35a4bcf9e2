// SPDX-License-Identifier: Apache-2.0
#include "deploy/wan/options.h"

#include <gtest/gtest.h>

namespace sekisho::wan {
namespace {

std::string ErrorOf(const std::vector<std::string>& words) {
  std::string error;
  EXPECT_FALSE(ParseOptions(words, error));
  return error;
}

TEST(Options, TakesValuesBehindABlankOrAnEqualsSign) {
  std::string error;
  const auto options =
      ParseOptions({"tree", "file", "--prefix=p-", "--seed", "9", "--mode", "busy", "--dilate=10",
                    "--deny-inbound", "c1,h3", "--compensate-us", "12.5", "--fifo", "5"},
                   error);

  ASSERT_TRUE(options) << error;
  EXPECT_TRUE(options->is_tree);
  EXPECT_EQ(options->prefix, "p-");
  EXPECT_EQ(options->seed, 9u);
  EXPECT_TRUE(options->is_busy);
  EXPECT_EQ(options->dilate, 10);
  EXPECT_EQ(options->deny_inbound.size(), 2u);
  EXPECT_EQ(options->compensate_us, 12.5);
  EXPECT_EQ(options->fifo, 5);
}

TEST(Options, NamesTheOptionOfAMistake) {
  EXPECT_EQ(ErrorOf({}), "expected 'pairs FILE' or 'tree FILE'; see --help");
  EXPECT_EQ(ErrorOf({"tree", "f"}),
            "--prefix is missing: what the namespaces of 'tree' are called");
  EXPECT_EQ(ErrorOf({"tree", "f", "--prefix", "a/b"}),
            "--prefix: expected letters, digits, - _ and ., got 'a/b'");
  EXPECT_EQ(ErrorOf({"pairs", "f", "--prefix", "p"}),
            "--prefix is not known to 'pairs'; see --help");
  EXPECT_EQ(ErrorOf({"pairs", "f", "--dilate", "0"}), "--dilate: expected 0.01 to 10000, got '0'");
  EXPECT_EQ(ErrorOf({"pairs", "f", "--mode=fast"}), "--mode: expected sleep or busy, got 'fast'");
  EXPECT_EQ(ErrorOf({"pairs", "f", "--seed"}),
            "--seed: a value is missing, or the option is not known; see --help");
}

}  // namespace
}  // namespace sekisho::wan
