// SPDX-License-Identifier: Apache-2.0
// From the user's machine to an endpoint: forward, connect, and what the relay says of itself.
#pragma once

#include <string>

#include "nxproxy/client/porter/options.h"

namespace sekisho::nxproxy::client {

// All by one relay of several; kExitFailed: that one cannot be reached, or does not know the target.

// Listens on 127.0.0.1:`local` (or ADDRESS:PORT); each connection leads to `target`.  Until a
// signal.
int Forward(const Options& options, const wire::HostPort& server, const std::string& local,
            const std::string& target);

// Standard input to `target`, what it answers to standard output.
int Connect(const Options& options, const wire::HostPort& server, const std::string& target);

// The relay's REPORTs, JSON, to standard output, one a line.
int Stats(const Options& options, const wire::HostPort& server);

}  // namespace sekisho::nxproxy::client
