// SPDX-License-Identifier: Apache-2.0
// Is this server the one that was meant?  The rules of client_tls.h and link.h.
#pragma once

#include <string>

#include "common/tls/client_tls.h"

namespace sekisho::tls {

// Reads from `trust_directory` what the chain needs.  Without a subject `expected` must name a host.
absl::StatusOr<identity::Identity> JudgeServer(const identity::Chain& chain,
                                               const std::string& trust_directory,
                                               const ExpectedServer& expected, identity::Time now);

}  // namespace sekisho::tls
