// SPDX-License-Identifier: Apache-2.0
#include "agent/task/pmi_pump.h"

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <string>

namespace sekisho::agent::task {
namespace {

class PmiPumpTest : public testing::Test {
 protected:
  PmiPumpTest() : pump_(SpecOf("/nobody/is/there")), rank_(pump_.Open()) {}
  ~PmiPumpTest() override { close(rank_); }
  static Spec SpecOf(const std::string& socket) {
    Spec spec;
    spec.pmi_socket = socket;
    return spec;
  }
  int Unread() const {
    int bytes = 0;
    EXPECT_EQ(ioctl(rank_, SIOCOUTQ, &bytes), 0);
    return bytes;
  }
  PmiPump pump_;
  const int rank_;
};

TEST_F(PmiPumpTest, WaitsForAnAgentOnlyAsLongAsThereIsSomethingToSay) {
  pump_.Pump(1000);
  EXPECT_EQ(pump_.WaitMs(1000), -1);

  ASSERT_EQ(send(rank_, "cmd=init\n", 9, MSG_NOSIGNAL), 9);
  pump_.Pump(1000);

  EXPECT_EQ(pump_.WaitMs(1100), 150);
  EXPECT_EQ(pump_.AgentReady().fd, -1);
}

TEST_F(PmiPumpTest, ARankThatIsFasterThanWeDoesNotKeepUsFromOurWork) {
  const std::string zeros(16 << 10, '\0');
  const int size = 1 << 20;  // as much as the system lets it
  ASSERT_EQ(setsockopt(rank_, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
  while (send(rank_, zeros.data(), zeros.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  const int before = Unread();

  pump_.Pump(0);

  EXPECT_LT(Unread(), before) << "it is refused, and what it says still must not block it";
  EXPECT_GT(Unread(), 0);
  EXPECT_EQ(pump_.WaitMs(0), -1);
}

TEST(PmiPump, LeavesNothingOpenAndRefusesAPathThatIsTooLongForASocket) {
  const int next = dup(0);
  close(next);
  {
    PmiPump pump(Spec{});
    close(pump.Open());
  }
  Spec spec;
  spec.pmi_socket = std::string(200, 'x');
  EXPECT_EQ(PmiPump(spec).Open(), -1);
  const int same = dup(0);
  close(same);
  EXPECT_EQ(same, next);
}

}  // namespace
}  // namespace sekisho::agent::task
