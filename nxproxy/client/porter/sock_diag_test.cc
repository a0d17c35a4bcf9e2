// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/sock_diag.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

struct Bound {
  int fd;
  uint16_t port;
};

Bound BindAny(int family) {
  sockaddr_in6 address{};  // large enough for both; all zero is "any"
  address.sin6_family = static_cast<sa_family_t>(family);
  socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof address;
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  return {fd, ntohs(address.sin6_port)};  // at one place in both
}

TEST(SockDiag, KnowsWhoListensAndWhoIsOnlyBound) {
  for (const int family : {AF_INET, AF_INET6}) {
    const Bound one = BindAny(family);
    struct stat status;
    ASSERT_EQ(fstat(one.fd, &status), 0);
    EXPECT_FALSE(IsListenedTo(one.port));
    EXPECT_FALSE(Listening().contains(status.st_ino));

    ASSERT_EQ(listen(one.fd, 1), 0);
    EXPECT_TRUE(IsListenedTo(one.port));
    EXPECT_TRUE(Listening().contains(status.st_ino));

    close(one.fd);
    EXPECT_FALSE(IsListenedTo(one.port));
    EXPECT_FALSE(Listening().contains(status.st_ino));
  }
}

}  // namespace
}  // namespace sekisho::nxproxy::client
