// SPDX-License-Identifier: Apache-2.0
// A signed request as a file instead of on its way: for audits, and for those who try what a thief could do with it.
#pragma once

#include <string>

#include "common/status.h"
#include "proto/job.pb.h"

namespace sekisho::client {

// Writes the serialized request into a new file that only its owner may read: until it is used or stale, who has
// it can have the job started.  InvalidArgument if the file is there; nothing stays of one that cannot be written.
absl::Status SaveRequest(const proto::SignedRequest& request, const std::string& path);

}  // namespace sekisho::client
