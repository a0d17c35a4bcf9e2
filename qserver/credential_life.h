// SPDX-License-Identifier: Apache-2.0
// Does a user's credential last as long as the job that he submits by it?  docs/protocol/19-delegation.md.  Pure.
#pragma once

#include <string>

#include "common/identity/openssl.h"

namespace sekisho::qserver {

enum class TooShort { kWarn, kRefuse, kAccept };

// `wall_time_s` 0: nobody knows how long the job will run, and nothing is said.  A warning, or "".
absl::StatusOr<std::string> JudgeLife(identity::Time credential_ends, int64_t wall_time_s, bool has_credential,
                                      TooShort policy, identity::Time now);

}  // namespace sekisho::qserver
