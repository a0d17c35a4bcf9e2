// SPDX-License-Identifier: Apache-2.0
#include "client/local/relay_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using testing::HasSubstr;

// Two pages.
const char kReport[] =
    R"({"endpoints": [{"endpoint": "10.0.1.10:5201", "inside": "10.1.0.11:5201", "scope": "public", )"
    R"("owner": "/O=Grid/CN=Alice", "job": "", "streams": 3, "bytes": 1000}], "whole": false})"
    "\n"
    R"({"endpoints": [{"endpoint": "10.0.1.10:20001", "inside": "10.1.0.12:1024", "scope": "job", )"
    R"("owner": "/O=Grid/CN=Alice", "job": "1f2e", "streams": 1, "bytes": 5000}], "whole": true})"
    "\n";

TEST(RelayTable, HasALineForEachEndpoint) {
  std::string error;

  const std::string table = RelayTable(kReport, "", 0, error);

  EXPECT_EQ(error, "");
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  EXPECT_THAT(table, HasSubstr("10.0.1.10:5201"));
  EXPECT_THAT(table, HasSubstr("1f2e"));
}

TEST(RelayReport, ItsPagesAreOne) {
  const std::string whole = JoinReports(kReport);

  EXPECT_THAT(whole, testing::AllOf(HasSubstr("10.0.1.10:5201"), HasSubstr("10.0.1.10:20001"),
                                    HasSubstr("\"whole\":true")));
  EXPECT_EQ(whole.find('\n'), std::string::npos);
}

TEST(RelayTable, PutsTheBusiestFirst) {
  std::string before = kReport;
  before.replace(before.find("5000"), 4, "1000");
  std::string error;

  const std::string table = RelayTable(kReport, before, 2, error);

  EXPECT_LT(table.find("10.0.1.10:20001"), table.find("10.0.1.10:5201"));
  EXPECT_THAT(table, HasSubstr(" 2000 "));
}

TEST(RelayTable, SaysThatAReportCannotBeRead) {
  for (const char* report : {"", "[]", "{\"endpoints\": 7}", "{"}) {
    std::string error;
    RelayTable(report, "", 0, error);
    EXPECT_NE(error, "") << report;
  }
}

TEST(RelayTable, TakesWrongTypesForAbsent) {
  std::string error;
  EXPECT_THAT(RelayTable(R"({"endpoints": [{"endpoint": 7, "bytes": "x"}]})", "", 0, error),
              HasSubstr(" 0 "));
}

}  // namespace
}  // namespace sekisho::client
