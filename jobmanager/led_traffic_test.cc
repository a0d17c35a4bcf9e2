// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/led_traffic.h"

#include <gtest/gtest.h>

namespace sekisho::jobmanager {
namespace {

TEST(LedTraffic, IsCountedByDirectionAndKind) {
  LedTraffic traffic;
  proto::PartDown submit;
  submit.mutable_submit()->set_body("body");
  proto::Order fence;
  fence.mutable_fence()->set_id("pmi 0");
  proto::PartDown down;
  down.mutable_order()->set_body(fence.SerializeAsString());
  proto::PartUp given;
  given.mutable_report()->mutable_fence()->set_data("card");
  proto::PartUp submitted;
  submitted.mutable_submitted()->set_job_id("j");

  traffic.NoteSubmit(submit);
  traffic.NoteHeard(submitted);
  traffic.NoteHeard(proto::PartUp());
  for (int part = 0; part < 2; ++part) {
    traffic.NoteOrder(fence, down);
    traffic.NoteHeard(given);
  }

  const auto count = [&](const char* direction, const char* kind) { return traffic.flows().at({direction, kind}).messages; };
  EXPECT_EQ(traffic.flows().size(), 5u);
  EXPECT_EQ(count("down", "submit"), 1u);
  EXPECT_EQ(count("up", "submitted"), 1u);
  EXPECT_EQ(count("up", "present"), 1u);
  EXPECT_EQ(count("down", "fence"), 2u);
  EXPECT_EQ(count("up", "fence"), 2u);
  EXPECT_EQ(traffic.flows().at({"up", "fence"}).bytes, 2 * given.ByteSizeLong());
}

}  // namespace
}  // namespace sekisho::jobmanager
