// SPDX-License-Identifier: Apache-2.0
// Two programs of one host whose datagrams go through memory, with a real sekisho-pmd.
#pragma once

#include "transport/pm/daemon/daemon_test.h"

namespace sekisho::pm {

class Near : public DaemonTest {
 protected:
  // Most of these are about programs that poll, also on a machine with more to do.
  void SetUp() override {
    setenv("PM_WAIT", "yield", 1);
    setenv("PM_DATAGRAM", "8972", 1);
    DaemonTest::SetUp();
  }
  void TearDown() override {
    DaemonTest::TearDown();
    unsetenv("PM_WAIT");
  }

  // Datagrams of this node that went through memory; they are counted every few calls.
  std::uint64_t Sent(std::uint16_t node) {
    const std::string top = Top(node);
    const std::size_t at = top.find("memory in ");
    unsigned long long in = 0, out = 0;
    if (at == std::string::npos ||
        std::sscanf(top.c_str() + at, "memory in %llu out %llu", &in, &out) != 2) {
      return 0;
    }
    return out;
  }

  // Answers each message, until the board says stop.
  void Echo(pmContext* context) {
    std::uint64_t number;
    int error;
    while (board_->stop == 0) {
      (void)pmWait(context, board_->polls != 0 ? 0 : 10'000);
      if (!ReceiveNumber(context, number, error)) continue;
      if (number != board_->received) ++board_->wrong;
      ++board_->received;
      while (SendNumber(context, 0, number, 8 + number * 37 % 4000) != 0) {
        (void)pmWait(context, 1000);
      }
    }
  }

  // One message there and back.
  bool RoundTrip(pmContext* own, std::uint64_t number) {
    return RoundTrip(own, number, 8 + number * 53 % 4000);
  }
  bool RoundTrip(pmContext* own, std::uint64_t number, std::size_t size) {
    std::uint64_t back = 0;
    int error = 0;
    const Nanos limit = Wire::Now() + 20 * kSecond;
    while (SendNumber(own, 1, number, size) != 0) {
      if (Wire::Now() > limit) return false;
      (void)pmWait(own, 1000);
    }
    while (!ReceiveNumber(own, back, error)) {
      if (Wire::Now() > limit) return false;
      (void)pmWait(own, board_->polls != 0 ? 0 : 1'000'000);
    }
    return back == number;
  }

  // Round trips until many more went through memory, both ways.
  void UntilNear(pmContext* own, std::uint64_t& number) {
    const std::uint64_t before[2] = {Sent(0), Sent(1)};
    bool all = true;
    EXPECT_TRUE(Until(20 * kSecond,
                      [&] {
                        for (int i = 0; all && i < 200; ++i) all = RoundTrip(own, number++);
                        return !all || (Sent(0) > before[0] + 100 && Sent(1) > before[1] + 100);
                      }))
        << Top(0) << Top(1);
    ASSERT_TRUE(all) << "no answer to " << number << "\n" << Top(0) << Top(1);
  }
};

}  // namespace sekisho::pm
