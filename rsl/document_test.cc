// SPDX-License-Identifier: Apache-2.0
// docs/protocol/1-rsl.md and the table of attributes say the same.
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "rsl/attributes.h"

namespace sekisho::rsl {
namespace {

std::string When(unsigned valid) {
  std::string when;
  for (const auto& [bit, letter] :
       {std::pair{kSubmit, "S"}, {kRestart, "R"}, {kUpdate, "U"}, {kInPart, "P"}}) {
    if ((valid & bit) != 0) {
      when += when.empty() ? letter : std::string(" ") + letter;
    }
  }
  return when;
}

std::string Now(Attribute::Support support) {
  switch (support) {
    case Attribute::Support::kYes:
      return "yes";
    case Attribute::Support::kLater:
      return "later";
    case Attribute::Support::kNever:
      return "no";
  }
  return "?";
}

TEST(RslDocument, HasARowForEachAttributeWithItsNumbers) {
  const char* source = std::getenv("SEKISHO_SOURCE");
  std::ifstream file(std::string(source != nullptr ? source : ".") + "/docs/protocol/1-rsl.md");
  ASSERT_TRUE(file) << "SEKISHO_SOURCE must name the source tree";
  std::map<std::string, std::string> rows;  // by the first cell; the cells from the third on
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    std::string before, name, standard, rest;
    if (std::getline(cells, before, '|') && std::getline(cells, name, '|') &&
        std::getline(cells, standard, '|') && std::getline(cells, rest) && name.size() > 2) {
      rows[name.substr(1, name.size() - 2)] = rest;
    }
  }

  for (const Attribute& attribute : Attributes()) {
    const std::string expected =
        fmt::format(" {} | {} | {} | {} |", When(attribute.valid), attribute.malformed,
                    attribute.invalid, Now(attribute.support));
    EXPECT_TRUE(rows[std::string(attribute.name)].starts_with(expected))
        << attribute.name << " should have" << expected << " and has"
        << rows[std::string(attribute.name)];
  }
}

}  // namespace
}  // namespace sekisho::rsl
