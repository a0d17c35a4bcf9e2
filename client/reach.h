// SPDX-License-Identifier: Apache-2.0
// Which step to a gatekeeper fails: the name, the TCP connection, or the handshake.
#pragma once

#include <string>

#include "client/sites.h"

namespace sekisho::client {

struct Step {
  bool is_ok = false;
  std::string detail;
  double milliseconds = 0;
};

Step LookUpName(const Contact& contact);
Step ConnectTcp(const Contact& contact, int timeout_ms);

// An Unavailable (GRAM 12), or Unauthenticated (GRAM 7) if `handshake` says that the server was refused.
absl::Status ExplainUnreachable(const Target& target, const absl::Status& handshake);

}  // namespace sekisho::client
