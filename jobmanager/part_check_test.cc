// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/part_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::jobmanager {
namespace {

using testing::HasSubstr;

proto::LeadRequest::Part Part(int count, const std::vector<int>& ranks = {},
                              proto::Charter::StartType start = proto::Charter::STRICT_BARRIER) {
  proto::RequestBody body;
  proto::Charter& charter = *body.mutable_submit()->mutable_charter();
  charter.set_world("world-1");
  charter.set_start(start);
  charter.mutable_rank()->Assign(ranks.begin(), ranks.end());
  proto::LeadRequest::Part part;
  part.set_count(count);
  part.mutable_submit()->set_body(body.SerializeAsString());
  return part;
}

std::string Why(const proto::LeadRequest::Part& part, bool is_held = false) {
  return std::string(CheckPart(part, "world-1", 3, is_held).message());
}

TEST(PartCheck, TakesRanksOfAnyNumberThatThereCanBe) {
  EXPECT_EQ(Why(Part(1)), "");
  EXPECT_EQ(Why(Part(kRanksOfAPart)), "");
  for (const int count : {0, -1, kRanksOfAPart + 1, 1 << 30}) {
    EXPECT_THAT(Why(Part(count)), HasSubstr("part 3 has ")) << count;
  }
}

TEST(PartCheck, ACharterIsForThisWorld) {
  EXPECT_THAT(std::string(CheckPart(Part(1), "world-2", 0, false).message()), HasSubstr("another world"));
  EXPECT_THAT(Why(proto::LeadRequest::Part()), HasSubstr("has no charter"));
}

TEST(PartCheck, ALabelIsOfALengthThatCanBeSaid) {
  for (const size_t size : {kLabelMost, kLabelMost + 1}) {
    proto::RequestBody body;
    proto::LeadRequest::Part part = Part(1);
    ASSERT_TRUE(body.ParseFromString(part.submit().body()));
    body.mutable_submit()->mutable_charter()->set_label(std::string(size, 'l'));
    part.mutable_submit()->set_body(body.SerializeAsString());
    EXPECT_EQ(Why(part).empty(), size == kLabelMost) << Why(part);
  }
}

TEST(PartCheck, AnOrderIsOfAllItsRanksInAWorldThatStaysWhole) {
  EXPECT_EQ(Why(Part(2, {3, 0})), "");
  EXPECT_THAT(Why(Part(2, {3})), HasSubstr("2 ranks, and an order of 1"));
  EXPECT_THAT(Why(Part(2, {3, 0}), /*is_held=*/true), HasSubstr("cannot be edited"));
  EXPECT_THAT(Why(Part(2, {3, 0}, proto::Charter::LOOSE_BARRIER)), HasSubstr("nor do without it"));
}

}  // namespace
}  // namespace sekisho::jobmanager
