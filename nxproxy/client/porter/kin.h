// SPDX-License-Identifier: Apache-2.0
// Processes that a command left behind: daemons that it started and left.
#pragma once

#include <string>

namespace sekisho::nxproxy::client {

// Whether a process other than this one was started with `variable` ("NAME=VALUE") in its
// environment.
bool HasKin(const std::string& variable);

}  // namespace sekisho::nxproxy::client
