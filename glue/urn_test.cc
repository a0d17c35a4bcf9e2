// SPDX-License-Identifier: Apache-2.0
#include "glue/urn.h"

#include <gtest/gtest.h>

namespace sekisho::glue {
namespace {

TEST(Urn, AnyNameComesBackAndOnlySafeSignsGoIn) {
  for (const std::string name : {"siteA", "a,o=glue", "50%41", "%", "%4", "ä", " ", "new\nline", "a:b/c@d", ""}) {
    const std::string part = ToUrnPart(name);

    EXPECT_EQ(FromUrnPart(part), name);
    EXPECT_EQ(part.find_first_of(" ,+=*()\"\\\n"), std::string::npos) << part;
  }
}

TEST(Urn, WhatIsNoEscapeStays) {
  EXPECT_EQ(FromUrnPart("50%"), "50%");
  EXPECT_EQ(FromUrnPart("%zz"), "%zz");
  EXPECT_EQ(FromUrnPart("%+1"), "%+1");
}

}  // namespace
}  // namespace sekisho::glue
