// SPDX-License-Identifier: Apache-2.0
#include "client/verbs/usage.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using testing::HasSubstr;

std::string Line(const char* account, const char* ended, const char* state, double processor_s, double wait_s = 0) {
  return fmt::format(
      R"({{"account":"{}","project":"","ended":"{}","state":"{}","processor_s":{},"cpu_s":1,"wait_s":{},"max_rss_mb":{}}})",
      account, ended, state, processor_s, wait_s, processor_s / 100);
}

TEST(Usage, AddsUpByAccount) {
  UsageTotals totals({});
  ASSERT_TRUE(totals.Add(Line("alice", "2026-11-01T10:00:00.000Z", "DONE", 3600, 4)).ok());
  ASSERT_TRUE(totals.Add(Line("alice", "2026-11-02T10:00:00.000Z", "FAILED", 1800, 8)).ok());
  ASSERT_TRUE(totals.Add(Line("bob", "2026-11-02T11:00:00.000Z", "CANCELLED", 0)).ok());

  const Usage& alice = totals.rows().at("alice");
  EXPECT_EQ(alice.jobs, 2);
  EXPECT_EQ(alice.done, 1);
  EXPECT_EQ(alice.failed, 1);
  EXPECT_EQ(alice.processor_s, 5400);
  EXPECT_EQ(alice.max_rss_mb, 36);
  EXPECT_THAT(totals.Table(), HasSubstr("alice    2     1     1       0          1.50         0.00   6 s        36\n"));
  EXPECT_THAT(totals.Table(), HasSubstr("\nall      3"));
  EXPECT_EQ(totals.ToJson()["all"]["processor_s"], 5400);
}

TEST(Usage, TimesAreOfTheEnd) {
  UsageTotals totals({.by = "day", .since = "2026-11-02", .until = "2026-11-03T12:00:00Z"});
  for (const char* ended : {"2026-11-01T23:59:59.999Z", "2026-11-02T00:00:00.000Z", "2026-11-03T11:59:59.000Z",
                            "2026-11-03T12:00:00.000Z"}) {
    ASSERT_TRUE(totals.Add(Line("alice", ended, "DONE", 1)).ok());
  }
  EXPECT_EQ(totals.rows().size(), 2u);
  EXPECT_EQ(totals.rows().at("2026-11-02").jobs, 1);
  EXPECT_EQ(totals.rows().at("2026-11-03").jobs, 1);
}

TEST(Usage, AJobWithoutAProjectHasARowOfItsOwn) {
  UsageTotals totals({.by = "project"});
  ASSERT_TRUE(totals.Add(Line("alice", "2026-11-01T10:00:00.000Z", "DONE", 1)).ok());
  EXPECT_EQ(totals.rows().count("-"), 1u);
}

TEST(Usage, WhatIsNoLineIsNamed) {
  UsageTotals totals({});
  EXPECT_THAT(std::string(totals.Add("{\"account\":\"al").message()), HasSubstr("parse error"));
  EXPECT_THAT(std::string(totals.Add("{\"state\":\"DONE\"}").message()), HasSubstr("ended"));
  EXPECT_THAT(std::string(totals.Add("[]").message()), HasSubstr("array"));
  EXPECT_TRUE(totals.rows().empty());
}

TEST(Usage, AQueryThatMakesNoSenseIsRefused) {
  EXPECT_TRUE(CheckUsageQuery({.by = "month", .since = "2026-11-01", .until = "2026-12-01T00:00:00Z"}).ok());
  EXPECT_THAT(std::string(CheckUsageQuery({.by = "user"}).message()), HasSubstr("account, subject"));
  for (const char* time : {"yesterday", "2026-1-1", "2026-11-01 12:00:00", "2026-11-01T12:00"}) {
    EXPECT_FALSE(CheckUsageQuery({.since = time}).ok()) << time;
  }
}

}  // namespace
}  // namespace sekisho::client
