// SPDX-License-Identifier: Apache-2.0
// Several jobs, asked about at their sites: one connection a site.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/job/many.h"

namespace sekisho::client {

// Jobs by the site that their names begin with.  A name that leads nowhere, or a site that fails, is said and does not
// hide the others.  The first exit code, in the order of `jobs`, that is not 0.
int ForEachSite(const std::vector<std::string>& jobs,
                const std::function<awaitable<Codes>(Session&, std::vector<std::string>)>& ask);

}  // namespace sekisho::client
