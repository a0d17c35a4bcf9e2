// SPDX-License-Identifier: Apache-2.0
#include "client/world/traffic_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const char kFirst[] =
    "\nsekisho-traffic node 0 0 0 0\nsekisho-traffic far 0 1 10000000 0\n"
    "sekisho-traffic sent 0 1 4096 3\nsekisho-traffic done 0 2 3 0\n";
const char kSecond[] =
    "\nsekisho-traffic node 1 1 0 0\nsekisho-traffic fetched 1 0 80 1\nsekisho-traffic done 1 2 2 0\n";

TEST(TrafficReport, IsReadAmongOtherTextAndInPieces) {
  TrafficReport report(2);
  report.Add(0, "a warning\nhalf a li");
  for (const char c : std::string(kFirst)) {
    report.Add(0, {&c, 1});
  }
  EXPECT_FALSE(report.is_whole());
  report.Add(1, kSecond);

  ASSERT_TRUE(report.is_whole());
  EXPECT_EQ(report.other_text(), "a warning\nhalf a li\n");
  EXPECT_EQ(report.NodeOf(1), 1);
  EXPECT_EQ(report.RoundTrip(1, 0), 10000000);
  EXPECT_EQ(report.RoundTrip(0, 0), 0);
  const auto pattern = report.pattern();
  ASSERT_TRUE(pattern.ok());
  EXPECT_EQ(pattern->total_bytes(), 4096 + 80);
  EXPECT_EQ(pattern->total_count(), 4);
  EXPECT_EQ(pattern->messages()[0].source, 0u);  // what rank 1 has fetched came from rank 0
  EXPECT_EQ(pattern->messages().size(), 1u);
}

TEST(TrafficReport, IsNotWholeUnlessEveryLineHasCome) {
  TrafficReport report(2);
  report.Add(0, kFirst);
  report.Add(1, "\nsekisho-traffic node 1 1 0 0\nsekisho-traffic done 1 2 2 0\n");
  EXPECT_FALSE(report.is_whole());
}

TEST(TrafficReport, TakesNoRanksWordForAnother) {
  for (const char* line : {"sent 0 1 9 9", "node 0 1 0 0", "done 0 2 0 0", "sent 1 2 9 9", "sent 1 0 -9 9", "sent 1 0 x 9",
                           "far 1 0 9 0", "far 0 7 9 0", "sent 1 0 99999999999999999999 1", "what 1 0 0 0", "sent 1 0"}) {
    TrafficReport report(2);
    report.Add(1, std::string("sekisho-traffic ") + line + "\n");
    EXPECT_THAT(report.other_text(), HasSubstr(line));
  }
}

TEST(TrafficReport, ComesBackFromAFile) {
  TrafficReport report(2);
  report.Add(1, kSecond);
  report.Add(0, kFirst);
  const auto again = TrafficReport::Parse(report.Print(), 2);

  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->Print(), report.Print());
  EXPECT_THAT(again->other_text(), IsEmpty());
  EXPECT_FALSE(TrafficReport::Parse(report.Print(), 3).ok());
  EXPECT_FALSE(TrafficReport::Parse(report.Print().substr(0, 60), 2).ok());
  EXPECT_FALSE(TrafficReport::Parse(report.Print() + "more\n", 2).ok());
  EXPECT_FALSE(TrafficReport::Parse("", 1).ok());
}

}  // namespace
}  // namespace sekisho::client
