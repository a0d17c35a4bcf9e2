// SPDX-License-Identifier: Apache-2.0
#include "glue/entry.h"

#include <gtest/gtest.h>

namespace sekisho::glue {
namespace {

constexpr const char* kNasty[] = {
    "plain",     "a,b",         "a=b",   "a+b",    "quo\"te",      "back\\slash", "<angle>", "semi;colon",
    "#hash",     " blank ",     "  ",    "*",      "(objectClass=*)", "a)(b",      "\\2a",    "null\0byte",
    "new\nline", "dc=x,o=glue", "Kyōto", "\x7f",   ",",
};

TEST(Dn, AnyValueComesBackFromAName) {
  for (const std::string value : kNasty) {
    const std::string dn = ChildDn("GLUE2ShareID", value, "o=glue");

    const auto names = ParseDn(dn);

    ASSERT_TRUE(names.has_value()) << dn;
    EXPECT_EQ(names->size(), 2u) << dn;
    EXPECT_EQ((*names)[0], std::make_pair(std::string("glue2shareid"), value)) << dn;
  }
}

TEST(Dn, TheSameNameInAnotherSpellingIsTheSame) {
  const std::string ours = CanonicalDn("GLUE2ShareID=a\\,b,o=glue");

  EXPECT_EQ(CanonicalDn("glue2shareid=a\\2Cb,o=glue"), ours);
  EXPECT_EQ(CanonicalDn("GLUE2ShareID = a\\2cb , o=glue"), ours);
  EXPECT_NE(CanonicalDn("GLUE2ShareID=A\\,b,o=glue"), ours);
}

TEST(Dn, WhatIsNoNameIsNone) {
  for (const char* text : {"x", "=x", "a=", "a=b,", "a=b+c=d,o=glue", "a=\\", "a=\\4", "a b=c", "a=\"b\""}) {
    EXPECT_FALSE(ParseDn(text).has_value()) << text;
  }
}

TEST(Filter, NoValueEndsOrWidensTheFilter) {
  for (const std::string value : kNasty) {
    const std::string escaped = EscapeFilterValue(value);

    EXPECT_EQ(escaped.find_first_of("*()"), std::string::npos) << escaped;
    for (size_t i = 0; i < escaped.size(); ++i) {
      if (escaped[i] == '\\') {
        ASSERT_LT(i + 2, escaped.size());
        EXPECT_TRUE(isxdigit(escaped[i + 1]) && isxdigit(escaped[i + 2]));
        i += 2;
      }
    }
  }
}

}  // namespace
}  // namespace sekisho::glue
