// SPDX-License-Identifier: Apache-2.0
// Our standard input on its way to a job's task 0.
#pragma once

#include <string>

#include "client/site/session.h"

namespace sekisho::client {

// Until the task has all of it, or takes no more.
awaitable<void> FeedInput(Session& session, std::string job_id);

// Whether standard input has anything to say: no if it is closed, /dev/null, or a terminal that is not ours.
bool HasInput();

}  // namespace sekisho::client
