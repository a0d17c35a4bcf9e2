// SPDX-License-Identifier: Apache-2.0
// A command under the shim, and the porter beside it.
#pragma once

#include "nxproxy/client/porter/options.h"

namespace sekisho::nxproxy::client {

inline constexpr int kExitBroken = 1;
inline constexpr int kExitFailed = 125;
inline constexpr int kExitRefused = 126;
inline constexpr int kExitUsage = 64;

// Runs the command; its exit code, 128+n if signal n ended it, 126 if it failed after the relay had
// refused an endpoint.
int Exec(const Options& options);

// For the library: writes $NXPROXY_PORTER's value to stdout, then serves until process `pid` and
// all endpoints have gone.
int Serve(const Options& options, int pid);

}  // namespace sekisho::nxproxy::client
