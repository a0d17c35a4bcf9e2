// SPDX-License-Identifier: Apache-2.0
// pm.h over the loopback interface: a job of two nodes, whose contexts are in one process.
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "transport/pm/device.h"
#include "transport/pm/pm.h"

namespace sekisho::pm {

// A port that was free a moment ago.
inline std::string FreeAddress() {
  Config config;
  Address own;
  std::unique_ptr<Device> device;
  EXPECT_FALSE(ParseAddress("127.0.0.1:0", own));
  EXPECT_FALSE(Device::Open(config, own, {}, nullptr, device));
  return "127.0.0.1:" + std::to_string(device->own_address().port);
}

class CApi : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pm_capi_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    std::ofstream(folder_ + "/key") << std::string(32, 'k');
    chmod((folder_ + "/key").c_str(), 0600);
    std::ofstream(folder_ + "/job")
        << "# two nodes\nkey " << folder_ << "/key\nnodes 2\ncontext 5\nnode 0 " << FreeAddress()
        << "\nnode 1 " << FreeAddress() << "\n";
  }
  void TearDown() override {
    for (pmContext* context : contexts_) {
      if (context != nullptr) pmCloseDevice(context);
    }
    unlink((folder_ + "/key").c_str());
    unlink((folder_ + "/job").c_str());
    rmdir(folder_.c_str());
  }

  int Open(int node) {
    std::string job = folder_ + "/job", number = std::to_string(node), a = "--job", b = "--node";
    char* arguments[] = {a.data(), job.data(), b.data(), number.data()};
    return pmOpenDevice("udp", 4, arguments, &contexts_[node]);
  }

  void SendText(int from, int to, const std::string& text) {
    void* buffer = nullptr;
    int error;
    while ((error = pmGetSendBuffer(contexts_[from], to, &buffer, text.size())) == ENOBUFS) {
    }
    ASSERT_EQ(error, 0);
    memcpy(buffer, text.data(), text.size());
    ASSERT_EQ(pmSend(contexts_[from]), 0);
  }

  std::string ReceiveText(int at) {
    void* buffer = nullptr;
    size_t length = 0;
    const Nanos limit = Device::Now() + 60 * kSecond;
    while (pmReceive(contexts_[at], &buffer, &length) == ENOBUFS && Device::Now() < limit) {
      // The other one's protocol needs its turn.
      if (contexts_[1 - at] != nullptr) (void)pmIsSendDone(contexts_[1 - at]);
    }
    const std::string text(static_cast<char*>(buffer), length);
    EXPECT_EQ(pmReleaseReceiveBuffer(contexts_[at]), 0);
    return text;
  }

  // What pmIsSendDone says in the end.
  int Finish(int node) {
    const Nanos limit = Device::Now() + 60 * kSecond;
    int error;
    while ((error = pmIsSendDone(contexts_[node])) == EBUSY && Device::Now() < limit) {
      if (contexts_[1 - node] != nullptr) (void)pmIsSendDone(contexts_[1 - node]);
    }
    return error;
  }

  std::string folder_;
  pmContext* contexts_[2] = {};
};

}  // namespace sekisho::pm
