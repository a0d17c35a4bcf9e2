// SPDX-License-Identifier: Apache-2.0
#include "agent/task/input_pump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "agent/task/spec.h"
#include "tests/support/full_disk.h"

namespace sekisho::agent::task {
namespace {

class InputPumpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/sekisho-pump-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    path_ = path;
    dir_ = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  void TearDown() override {
    close(dir_);
    std::filesystem::remove_all(path_);
  }
  std::string Told() const {
    std::ifstream file(path_ + "/" + kInputTaken);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string path_;
  int dir_ = -1;
};

TEST_F(InputPumpTest, DoesNotOpenWhereItCouldNeverTellWhatWasTaken) {
  InputPump pump(dir_);
  const test::FullDisk disk;

  const int pipe = pump.Open(getuid(), getgid());
  const int error = errno;

  EXPECT_LT(pipe, 0);
  EXPECT_EQ(error, EFBIG);
}

TEST_F(InputPumpTest, TellsLaterWhatCouldNotBeTold) {
  InputPump pump(dir_);
  const int pipe = pump.Open(getuid(), getgid());
  ASSERT_GE(pipe, 0);
  EXPECT_EQ(Told(), "00000000000000000000\n");
  std::ofstream(path_ + "/" + kInputFile) << "some input";
  {
    const test::FullDisk disk;
    pump.Grown(false);
  }
  EXPECT_TRUE(pump.is_behind());

  pump.Pump();

  EXPECT_FALSE(pump.is_behind());
  EXPECT_EQ(Told(), "00000000000000000010\n");
  close(pipe);
}

}  // namespace
}  // namespace sekisho::agent::task
