// SPDX-License-Identifier: Apache-2.0
// Sockets as the relay makes them: non-blocking, closed on exec.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "nxproxy/poller.h"
#include "nxproxy/wire/address.h"

namespace sekisho::nxproxy {

// Listens; a closed Descriptor and errno if it cannot.
Descriptor ListenOn(const wire::Address& address);

// Begins to connect; a closed Descriptor and errno if it cannot even begin.  Writable: it has
// ended.
Descriptor BeginConnect(const wire::Address& address);
int ConnectError(int fd);  // 0: connected

// Closes with a reset.
void Reset(Descriptor socket);

wire::Address LocalAddress(int fd);
wire::Address PeerAddress(int fd);

// Has the other side closed it, or sent what it should not have?
bool IsQuiet(int fd);

// All of this machine's addresses.
std::vector<wire::Address> OwnAddresses();

// "host:port" by the system's resolver, which may take its time: the first address.
absl::StatusOr<wire::Address> Resolve(const std::string& host_port);

std::string RandomBytes(size_t count);
uint64_t RandomId();  // never 0
std::string Sha256Of(const std::string& bytes);

int64_t NowMs();  // monotonic
int64_t WallSeconds();

}  // namespace sekisho::nxproxy
