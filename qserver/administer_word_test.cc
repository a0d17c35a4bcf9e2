// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

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
  AuditFile file(path);
  ASSERT_TRUE(file.Write(line).ok() && file.Write(line).ok());
  EXPECT_EQ(std::filesystem::file_size(path), 2 * line.size());
  EXPECT_FALSE(AuditFile("/nowhere/audit").Write(line).ok());
}

class AuditFileTest : public testing::Test {
 protected:
  AuditFileTest() : path_(testing::TempDir() + "kept-audit.jsonl") { std::filesystem::remove(path_); }
  ~AuditFileTest() override { std::filesystem::remove(path_); }

  std::string Content() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string path_;
};

// No file of this process grows beyond that, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit most{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &most);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(AuditFileTest, WritesOnceThereIsRoomWhatHadNone) {
  AuditFile file(path_);
  ASSERT_TRUE(file.Write("one\n").ok());
  bool is_written = true;
  {
    const FullDisk disk(6);  // half of the next
    is_written = file.Write("two\n").ok();
  }
  EXPECT_FALSE(is_written);
  EXPECT_EQ(Content(), "one\n");

  EXPECT_TRUE(file.Write("").ok());
  EXPECT_TRUE(file.Write("").ok());
  EXPECT_TRUE(file.Write("three\n").ok());

  EXPECT_EQ(Content(), "one\ntwo\nthree\n");
}

TEST_F(AuditFileTest, HalfALineOfACrashGoesHoweverLong) {
  std::ofstream(path_) << "one\n" << std::string(10'000, 'x');
  ASSERT_TRUE(AuditFile(path_).Write("two\n").ok());
  EXPECT_EQ(Content(), "one\ntwo\n");

  std::filesystem::remove(path_);
  std::ofstream(path_) << "half";
  ASSERT_TRUE(AuditFile(path_).Write("one\n").ok());
  EXPECT_EQ(Content(), "one\n");
}

}  // namespace
}  // namespace sekisho::qserver
