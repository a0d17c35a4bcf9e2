// SPDX-License-Identifier: Apache-2.0
// What a user signs for a part of a world: its submission with a charter, and the passage by which
// its leader may speak at its site.  docs/protocol/15-mpirun.md, "Charters".
#pragma once

#include <string>

#include "client/world/world_part.h"
#include "proto/world.pb.h"

namespace sekisho::client {

// `terms`: the charter.  The part's submission has the request id WORLD.PART.
absl::StatusOr<proto::LeadRequest::Part> SignPart(const WorldPart& part, const proto::Charter& terms,
                                                  bool has_input);

}  // namespace sekisho::client
