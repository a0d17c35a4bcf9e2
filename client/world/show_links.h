// SPDX-License-Identifier: Apache-2.0
// sekisho status --links: asks the sites of all parts of a world what their ranks connected to.
#pragma once

#include <string>

#include "client/site/session.h"

namespace sekisho::client {

// `session`: of the site of one of its parts.  The exit code.
awaitable<int> ShowLinks(Session& session, const std::string& job_id, bool is_json);

}  // namespace sekisho::client
