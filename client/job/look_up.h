// SPDX-License-Identifier: Apache-2.0
// How one job stands.
#pragma once

#include "client/site/session.h"

namespace sekisho::client {

// Its state is UNKNOWN if the site has none of that name that is ours.
awaitable<absl::StatusOr<proto::JobStatus>> LookUp(Session& session, std::string job_id);

}  // namespace sekisho::client
