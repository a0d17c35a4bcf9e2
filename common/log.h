// SPDX-License-Identifier: Apache-2.0
// Logging: spdlog to stderr, one line an event.  error = an operator must act; warn = odd, we go on;
// info = life of a job; debug = per message.  Lines about a job carry `job=`.  No secrets, no payloads.
#pragma once

#include <string>

#include <spdlog/spdlog.h>

namespace sekisho {

// Level from SEKISHO_LOG (trace debug info warn error off), info by default.
void InitLog(const std::string& name);

// What came from outside, fit for one line of a log: control characters escaped, at most 256 bytes.
std::string Printable(const std::string& text);

}  // namespace sekisho
