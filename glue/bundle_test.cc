// SPDX-License-Identifier: Apache-2.0
#include "glue/bundle.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace sekisho::glue {
namespace {

std::string Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Bundle, JoinsAuthoritiesAndListsAndNothingElse) {
  char directory[] = "/tmp/bundle-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string at = directory;
  const auto write = [&](const std::string& name, const std::string& text) { std::ofstream(at + "/" + name) << text; };

  EXPECT_FALSE(Bundle::Make(at).ok());
  write("0123abcd.0", "ONE");
  write("0123abcd.1", "");
  write("0123abcd.signing_policy", "NO");
  write("0123abcd.0.bak", "NO");
  EXPECT_EQ(Bundle::Make(at)->crl_file(), "");
  write("0123abcd.r0", "LIST");
  const auto bundle = Bundle::Make(at);
  ASSERT_TRUE(bundle.ok());

  EXPECT_NE(Read(bundle->ca_file()).find("ONE\n"), std::string::npos);
  EXPECT_EQ(Read(bundle->ca_file()).find("NO"), std::string::npos);
  EXPECT_EQ(Read(bundle->crl_file()), "LIST\n");
  std::filesystem::remove_all(at);
}

}  // namespace
}  // namespace sekisho::glue
