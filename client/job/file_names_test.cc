// SPDX-License-Identifier: Apache-2.0
#include "client/job/file_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FileNames, SeveralGoIntoADirectoryUnderTheirNames) {
  EXPECT_THAT(*PlacesHere({"a/x", "b/y"}, "here", true), ElementsAre("here/x", "here/y"));
  EXPECT_THAT(*PlacesThere({"a/x", "b/y"}, "in/"), ElementsAre("in/x", "in/y"));
  EXPECT_THAT(*PlacesThere({"a/x", "b/y"}, "in"), ElementsAre("in/x", "in/y"));
  EXPECT_THAT(*PlacesThere({"a/x", "b/y"}, ""), ElementsAre("x", "y"));
}

TEST(FileNames, OneAloneGoesToAFileAndAllToStandardOutput) {
  EXPECT_THAT(*PlacesHere({"a/x"}, "here", false), ElementsAre("here"));
  EXPECT_THAT(*PlacesThere({"a/x"}, "in"), ElementsAre("in"));
  EXPECT_THAT(*PlacesHere({"a/x", "b/x"}, "-", false), ElementsAre("-", "-"));
}

TEST(FileNames, TwoForOneFileAreRefusedByTheirNames) {
  for (const auto& places : {PlacesHere({"a/out", "b/out"}, "here", true), PlacesThere({"a/out", "b/out"}, "here/")}) {
    ASSERT_FALSE(places.ok());
    EXPECT_THAT(std::string(places.status().message()), HasSubstr("a/out and b/out would both be here/out"));
  }
  EXPECT_THAT(std::string(PlacesHere({"x", "y"}, "file", false).status().message()),
              HasSubstr("-o file: expected a directory"));
}

TEST(FileNames, ATakenNameGetsItsNumber) {
  EXPECT_EQ(FreeName("out", 3, {"other"}), "out");
  EXPECT_EQ(FreeName("out", 3, {"out"}), "out.3");
  EXPECT_EQ(FreeName("out", 3, {"out", "out.3"}), "out.3.3");
}

}  // namespace
}  // namespace sekisho::client
