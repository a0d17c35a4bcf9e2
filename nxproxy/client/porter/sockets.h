// SPDX-License-Identifier: Apache-2.0
// Small things with TCP sockets.
#pragma once

#include <string>
#include <utility>

#include "nxproxy/wire/address.h"

namespace sekisho::nxproxy::client {

// A socket that does not block, on its way to `to`, with `first` as its first bytes; -1 and errno.
// `is_v6`: of that family, an IPv4 address then being mapped.
int DialWith(const wire::Address& to, bool is_v6, const std::string& first);

// The pending error of a socket, 0 if none.
int ErrorOf(int fd);

// Closes with a reset: the far end sees that it was no proper end.
void Reset(int fd);

wire::Address LocalOf(int fd);
wire::Address RemoteOf(int fd);

}  // namespace sekisho::nxproxy::client
