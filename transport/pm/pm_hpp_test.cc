// SPDX-License-Identifier: Apache-2.0
// The C++ header.
#include "transport/pm/pm.hpp"

#include <algorithm>
#include <vector>

#include "transport/pm/capi_test.h"

namespace sekisho::pm {
namespace {

class Wrapper : public CApi {
 protected:
  std::error_code OpenOwner(int node) {
    setenv("PM_JOB_FILE", (folder_ + "/job").c_str(), 1);
    setenv("PM_NODE", std::to_string(node).c_str(), 1);
    const auto error = owners_[node].Open();
    unsetenv("PM_JOB_FILE");
    unsetenv("PM_NODE");
    return error;
  }

  // Both go on until it is not "later".
  template <typename Ask>
  std::error_code Until(Ask ask) {
    const Nanos limit = Device::Now() + 10 * kSecond;
    std::error_code error;
    while (::pm::IsLater(error = ask()) && Device::Now() < limit) {
      for (::pm::Context& owner : owners_) (void)owner.IsSendDone();
    }
    return error;
  }

  ::pm::Context owners_[2];
};

TEST_F(Wrapper, MessagesAreOwned) {
  ASSERT_FALSE(OpenOwner(0));
  ASSERT_FALSE(OpenOwner(1));
  EXPECT_EQ(owners_[1].node(), 1);
  EXPECT_EQ(owners_[1].nodes(), 2);
  ::pm::SendBuffer buffer, given_up;
  ::pm::Pending pending;
  ASSERT_FALSE(owners_[0].GetSendBuffer(1, 100, given_up));
  ASSERT_FALSE(owners_[0].GetSendBuffer(1, 100, buffer));
  given_up = {};
  std::fill(buffer.bytes().begin(), buffer.bytes().end(), std::byte{7});
  ASSERT_FALSE(buffer.Truncate(60));
  EXPECT_EQ(buffer.bytes().size(), 60u);
  ASSERT_FALSE(buffer.Send(&pending));
  EXPECT_FALSE(buffer);
  EXPECT_EQ(pending.State(), std::errc::device_or_resource_busy);

  std::vector<::pm::Received> held;
  ::pm::Received received;
  ASSERT_FALSE(Until([&] { return owners_[1].Receive(received); }));
  EXPECT_EQ(received.bytes().size(), 60u);
  EXPECT_EQ(std::to_integer<int>(received.bytes()[59]), 7);
  EXPECT_EQ(received.source(), 0);
  held.push_back(std::move(received));
  EXPECT_FALSE(received);
  EXPECT_FALSE(Until([&] { return pending.State(); }));
  EXPECT_EQ(owners_[1].Receive(received), std::errc::no_buffer_space) << "nothing was given up";
  EXPECT_EQ(owners_[1].Wait(std::chrono::microseconds(10)), std::errc::timed_out);
}

TEST_F(Wrapper, RegionsEndWithTheirOwners) {
  ASSERT_FALSE(OpenOwner(0));
  ASSERT_FALSE(OpenOwner(1));
  std::vector<std::byte> here(100'000, std::byte{1}), there(100'000);
  ::pm::Region local, remote;
  ASSERT_FALSE(owners_[0].Register(0, here, local));
  ASSERT_FALSE(owners_[1].Register(0, there, remote));
  const pmHandle handle = remote.handle();
  pmHandle part;
  ASSERT_FALSE(::pm::SubHandle(handle, 10, 1000, part));
  EXPECT_TRUE(::pm::SubHandle(handle, 100'000, 1, part));

  ::pm::Pending write, refused;
  ASSERT_FALSE(owners_[0].Write(1, handle, local.handle(), 100'000, write));
  EXPECT_FALSE(Until([&] { return write.State(); }));
  EXPECT_EQ(there, here);
  remote.Reset();
  ASSERT_FALSE(owners_[0].Read(1, handle, local.handle(), 100, refused));
  EXPECT_EQ(Until([&] { return refused.State(); }), std::errc::permission_denied);

  int fd = -1;
  ASSERT_FALSE(owners_[1].Detach(fd));
  EXPECT_FALSE(owners_[1]);
  EXPECT_FALSE(owners_[1].Attach(fd));
}

}  // namespace
}  // namespace sekisho::pm
