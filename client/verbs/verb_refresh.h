// SPDX-License-Identifier: Apache-2.0
// sekisho proxy refresh: the part of the verb proxy that talks to sites.
#pragma once

#include "client/verbs/verbs.h"

namespace sekisho::client {

void AddRefreshVerb(CLI::App& proxy, Invocation& invocation);

}  // namespace sekisho::client
