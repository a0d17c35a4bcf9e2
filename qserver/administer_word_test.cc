// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/refusal.h"
#include "qserver/administer.h"

namespace sekisho::qserver {
namespace {

using ::testing::HasSubstr;
using Administer = proto::RequestBody::Administer;

absl::Status Check(const Administer& word) {
  AdmissionRules rules;
  rules.administrators = {"/CN=Admin"};
  return CheckWord(word, rules, [](const std::string& node) { return node == "n1"; });
}

TEST(AdministratorsWord, MayNotBanAnAdministratorNorWhatIsNoSubject) {
  Administer word;
  word.mutable_ban()->set_subject("/CN=Admin");
  EXPECT_THAT(Message(Check(word)), HasSubstr("/CN=Admin is an administrator"));

  word.mutable_ban()->set_subject("alice");
  EXPECT_THAT(Message(Check(word)), HasSubstr("saw \"alice\""));

  word.mutable_ban()->set_subject("/CN=Alice");
  EXPECT_TRUE(Check(word).ok());
}

TEST(AdministratorsWord, DrainsOnlyNodesThatAreThere) {
  Administer word;
  word.mutable_drain()->set_node("n9");
  EXPECT_THAT(Message(Check(word)), HasSubstr("no node n9"));

  word.mutable_drain()->set_lift(true);  // it may have been taken out of the inventory since
  EXPECT_TRUE(Check(word).ok());
}

TEST(AdministratorsWord, MayNotBeEmptyNorHaveALongReason) {
  Administer word;
  EXPECT_FALSE(Check(word).ok());

  word.mutable_drain()->set_reason(std::string(1025, 'x'));
  EXPECT_THAT(Message(Check(word)), HasSubstr("at most 1024 bytes"));
}

TEST(AdministratorsWord, IsOneLineOfTheAuditFileWhateverItSays) {
  Administer word;
  word.mutable_kill()->set_job_id("j1");
  word.mutable_kill()->set_reason("two\nlines\xff");

  const std::string line = AuditLine(word, "/CN=Admin", "r1", {"j1"}, 1'800'000'000'123);

  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_THAT(line, HasSubstr(R"("time":"2027-01-15T08:00:00.123Z","by":"/CN=Admin","what":"kill","request":"r1")"));
  const std::string path = testing::TempDir() + "audit.jsonl";
  std::filesystem::remove(path);
  const AuditFile file(path);
  ASSERT_TRUE(file.Write(line).ok() && file.Write(line).ok());
  EXPECT_EQ(std::filesystem::file_size(path), 2 * line.size());
  EXPECT_FALSE(AuditFile("/nowhere/audit").Write(line).ok());
}

}  // namespace
}  // namespace sekisho::qserver
