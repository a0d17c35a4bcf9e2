// SPDX-License-Identifier: Apache-2.0
// A refusal that has become a Status is known again by the name that its message begins with.
#pragma once

#include <optional>

#include "common/identity/refusal.h"

namespace sekisho::identity {

// Of what ToStatus() made; none of any other status.
std::optional<Reason> ReasonOf(const absl::Status& status);

// Is the trust directory of whoever refuses to be mended, and not what it refuses?
bool LiesInTheTrustDirectory(Reason reason);

}  // namespace sekisho::identity
