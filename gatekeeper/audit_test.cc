// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/audit.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::gatekeeper {
namespace {

AuditRecord Record() {
  AuditRecord record;
  record.time = std::chrono::system_clock::time_point(std::chrono::milliseconds(1'000'000'000'123));
  record.peer = "ipv4:192.0.2.7:40000";
  record.subject = "/O=Grid/CN=Alice";
  record.account = "alice";
  record.service = "jobmanager";
  record.method = "/sekisho.proto.JobService/Run";
  record.status = "OK";
  record.bytes_in = 120;
  record.bytes_out = 99;
  record.took = std::chrono::milliseconds(12);
  return record;
}

TEST(Audit, SaysWhoDidWhatInOneLine) {
  EXPECT_EQ(AuditLine(Record()),
            "2001-09-09T01:46:40.123Z peer=\"ipv4:192.0.2.7:40000\" subject=\"/O=Grid/CN=Alice\" "
            "account=\"alice\" service=\"jobmanager\" method=\"/sekisho.proto.JobService/Run\" status=OK "
            "in=120 out=99 ms=12");
}

TEST(Audit, CannotBeMadeToSpeakInAnothersName) {
  for (int byte = 0; byte < 256; ++byte) {
    AuditRecord record = Record();
    record.subject = record.service = record.method = record.reason =
        std::string("x") + static_cast<char>(byte) + "\" account=\"root\n2001 forged";

    const std::string line = AuditLine(record);

    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](unsigned char c) { return c >= 32 && c < 127; }));
    EXPECT_THAT(line, testing::HasSubstr("\\\" account=\\\"root\\x0A2001 forged\" account=\"alice\""));
  }
}

TEST(Audit, CutsLongValues) {
  AuditRecord record = Record();
  record.method = std::string(1 << 20, 'm');

  EXPECT_LT(AuditLine(record).size(), 2048u);
}

TEST(Audit, StrangersGetFewLinesAndTheRestIsCounted) {
  StrangerLines lines;
  const StrangerLines::Time begun{};
  int written = 0;
  for (int i = 0; i < 1000; ++i) {
    written += lines.Admit("192.0.2.7", begun + std::chrono::milliseconds(i));
  }
  EXPECT_EQ(written, StrangerLines::kLines);
  EXPECT_TRUE(lines.Admit("192.0.2.8", begun));
  EXPECT_TRUE(lines.Due(begun + std::chrono::seconds(9)).empty());

  const auto due = lines.Due(begun + std::chrono::seconds(10));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0], std::make_pair(std::string("192.0.2.7"), uint64_t(1000 - StrangerLines::kLines)));
  EXPECT_TRUE(lines.Admit("192.0.2.7", begun + std::chrono::seconds(10)));
  EXPECT_THAT(AuditLine(LeftOut("192.0.2.7", 990)), testing::HasSubstr("and 990 more refused calls"));
}

TEST(Audit, HoldsALimitOfAddresses) {
  StrangerLines lines;
  int written = 0;
  for (size_t i = 0; i < 3 * StrangerLines::kAddresses; ++i) {
    written += lines.Admit(std::to_string(i), StrangerLines::Time{});
  }
  EXPECT_EQ(written, int(StrangerLines::kAddresses) + StrangerLines::kLines);
}

TEST(Audit, AppendsAndFollowsRotation) {
  char directory[] = "/tmp/sekisho-audit-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/audit.log";
  AuditLog log(path);
  ASSERT_TRUE(log.Open().ok());
  ASSERT_TRUE(log.Write(Record()).ok());

  std::filesystem::rename(path, path + ".1");
  ASSERT_TRUE(log.Open().ok());
  ASSERT_TRUE(log.Write(Record()).ok());

  for (const std::string& name : {path, path + ".1"}) {
    std::ifstream file(name);
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line, AuditLine(Record()));
  }
  std::filesystem::remove_all(directory);
}

TEST(Audit, KeepsLinesThatCannotBeWrittenUntilTheyCan) {
  char directory[] = "/tmp/sekisho-audit-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/audit.log";
  std::filesystem::create_symlink("/dev/full", path);
  AuditLog log(path);
  ASSERT_TRUE(log.Open().ok());

  const absl::Status full = log.Write(Record());
  EXPECT_EQ(full.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(full.ToString(), testing::HasSubstr("No space left on device"));
  EXPECT_FALSE(log.Flush().ok());
  EXPECT_FALSE(log.Write(Record()).ok());
  EXPECT_EQ(log.waiting(), 2u);

  std::filesystem::remove(path);
  ASSERT_TRUE(log.Open().ok());
  EXPECT_TRUE(log.Flush().ok());
  EXPECT_EQ(log.waiting(), 0u);
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    EXPECT_EQ(line, AuditLine(Record()));
  }
  EXPECT_EQ(lines, 2);
  std::filesystem::remove_all(directory);
}

TEST(Audit, HalfALineOfAnEarlierProcessSpoilsNoOther) {
  char directory[] = "/tmp/sekisho-audit-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/audit.log";
  std::ofstream(path) << "2001-09-09T01:46:40.1";

  AuditLog log(path);
  ASSERT_TRUE(log.Open().ok());
  ASSERT_TRUE(log.Open().ok());  // as for a rotation
  ASSERT_TRUE(log.Write(Record()).ok());
  AuditLog next(path);
  ASSERT_TRUE(next.Open().ok());
  ASSERT_TRUE(next.Write(Record()).ok());

  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), "2001-09-09T01:46:40.1\n" + AuditLine(Record()) + "\n" + AuditLine(Record()) + "\n");
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace sekisho::gatekeeper
