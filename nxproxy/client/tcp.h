// SPDX-License-Identifier: Apache-2.0
// What a descriptor is, and addresses as its family has them.  No allocation.
#pragma once

#include <cstdint>

#include <sys/socket.h>

#include "nxproxy/client/local.h"

namespace sekisho::nxproxy::client {

// AF_INET or AF_INET6 if `fd` is TCP, else 0.
int TcpFamily(int fd);

uint32_t FlagsOf(int fd, int family);  // kIsV6, kIsV6Only
uint64_t InodeOf(int fd);

// As `family` has it: an IPv6 socket sees IPv4 as ::ffff:a.b.c.d.
socklen_t Fill(const Address& address, int family, sockaddr_storage& out);

// Into what a caller gave, which may be too small or absent.
void CopyOut(const sockaddr_storage& from, socklen_t bytes, sockaddr* address, socklen_t* length);

// What a connection inherits from its listener (socket(7)) and a program may have set there.
void CopyOptions(int from, int to);

// Until the connection stands or failed.  0, or -1 and errno.
int WaitForConnection(int fd);

}  // namespace sekisho::nxproxy::client
