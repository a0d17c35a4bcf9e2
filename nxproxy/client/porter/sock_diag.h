// SPDX-License-Identifier: Apache-2.0
// Who listens, asked of the kernel by sock_diag(7): /proc/net/tcp goes through every bucket of the table of
// connections, which takes milliseconds however few there are.
#pragma once

#include <cstdint>
#include <set>

namespace sekisho::nxproxy::client {

// Whether somebody of our network namespace listens at `port`, with any address.
bool IsListenedTo(uint16_t port);

// The inodes of all sockets there that listen.
std::set<uint64_t> Listening();

}  // namespace sekisho::nxproxy::client
