// SPDX-License-Identifier: Apache-2.0
// Job files that are written for those who look at a job that had none.
#include "transport/pm/job_file.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "transport/pm/errors.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

class JobFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pm_job_file_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    job_.context = 65535;
    job_.nodes = 2;
    job_.key.fill(7);
    job_.addresses.reset(new Address[2]);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void SetAddresses(const char* first, const char* second) {
    ASSERT_FALSE(ParseAddress(first, job_.addresses[0]));
    ASSERT_FALSE(ParseAddress(second, job_.addresses[1]));
  }

  void ExpectThatWhatIsWrittenIsRead() {
    ASSERT_FALSE(WriteJobKey(path().c_str(), job_.key));
    ASSERT_FALSE(WriteJobFile(path().c_str(), job_));
    JobFile read;
    int line;
    ASSERT_FALSE(ReadJobFile(path().c_str(), read, line)) << line;
    EXPECT_EQ(read.context, job_.context);
    EXPECT_EQ(read.channels, job_.channels);
    EXPECT_EQ(read.payload_tag, job_.payload_tag);
    EXPECT_EQ(read.key, job_.key);
    ASSERT_EQ(read.nodes, job_.nodes);
    for (int node = 0; node < job_.nodes; ++node) {
      EXPECT_EQ(read.addresses[node], job_.addresses[node]);
    }
  }

  std::string path() const { return folder_ + "/job"; }

  std::string folder_;
  JobFile job_;
};

TEST_F(JobFileTest, WhatIsWrittenIsRead) {
  SetAddresses("192.0.2.1:1", "127.0.0.1:65535");
  ExpectThatWhatIsWrittenIsRead();
  SetAddresses("[2001:db8::2]:5000", "[::1]:5001");
  job_.channels = 256;
  job_.payload_tag = false;
  ExpectThatWhatIsWrittenIsRead();
}

TEST_F(JobFileTest, WhoHasAnOlderKeyOpenDoesNotReadTheNewOne) {
  SetAddresses("192.0.2.1:1", "192.0.2.2:1");
  const std::string older(32, 'o');
  std::ofstream(path() + ".key") << older;
  ASSERT_EQ(chmod((path() + ".key").c_str(), 0644), 0);
  std::ifstream before(path() + ".key");
  ExpectThatWhatIsWrittenIsRead();  // which refuses a key that others may read
  std::string text;
  std::getline(before, text);
  EXPECT_EQ(text, older);
}

TEST_F(JobFileTest, WhatIsThereAndIsNoKeyStays) {
  SetAddresses("192.0.2.1:1", "192.0.2.2:1");
  std::ofstream(path() + ".key") << "a certificate's, say";
  EXPECT_EQ(WriteJobKey(path().c_str(), job_.key), std::errc::file_exists);
  ASSERT_TRUE(std::filesystem::remove(path() + ".key"));
  // A link to a file that could be a key is none.
  std::ofstream(folder_ + "/other") << std::string(32, 'o');
  std::filesystem::create_symlink(folder_ + "/other", path() + ".key");
  EXPECT_EQ(WriteJobKey(path().c_str(), job_.key), std::errc::file_exists);
  ASSERT_TRUE(std::filesystem::remove(path() + ".key"));

  std::filesystem::create_symlink(folder_ + "/other", path() + ".new");
  ExpectThatWhatIsWrittenIsRead();
  std::ifstream other(folder_ + "/other");
  std::string text;
  std::getline(other, text);
  EXPECT_EQ(text, std::string(32, 'o'));
}

TEST_F(JobFileTest, IsNotWrittenWhereItCouldNotBeRead) {
  SetAddresses("192.0.2.1:1", "192.0.2.2:1");
  for (const std::string& name :
       {std::string("relative"), folder_ + "/a b", folder_ + "/a#b", std::string()}) {
    EXPECT_EQ(WriteJobFile(name.c_str(), job_), Error::kBadConfig) << name;
    EXPECT_EQ(WriteJobKey(name.c_str(), job_.key), Error::kBadConfig) << name;
  }
  EXPECT_EQ(WriteJobFile((folder_ + "/no/job").c_str(), job_),
            std::errc::no_such_file_or_directory);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_EQ(WriteJobFile(folder_.c_str(), job_), std::errc::is_a_directory);
  EXPECT_FALSE(std::filesystem::exists(folder_ + ".new"));
}

}  // namespace
}  // namespace sekisho::pm
