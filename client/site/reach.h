// SPDX-License-Identifier: Apache-2.0
// Which step to a gatekeeper fails: the name, the TCP connection, or the handshake.
#pragma once

#include <string>

#include "client/site/sites.h"

namespace sekisho::client {

struct Step {
  bool is_ok = false;
  std::string detail;
  double milliseconds = 0;
};

Step LookUpName(const Contact& contact);
Step ConnectTcp(const Contact& contact, int timeout_ms);

// A connected socket; or Unavailable (GRAM 12), saying whether it was the name or TCP.
absl::StatusOr<int> Dial(const Target& target);

// Why the handshake failed: Unavailable (GRAM 12), or Unauthenticated (GRAM 7) if the server was refused.
absl::Status ExplainHandshake(const Target& target, const absl::Status& handshake);

}  // namespace sekisho::client
