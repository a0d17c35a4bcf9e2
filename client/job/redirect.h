// SPDX-License-Identifier: Apache-2.0
// A job's output goes elsewhere, by its user's word: docs/protocol/17-staging.md, "Redirection".
#pragma once

#include <optional>
#include <string>

#include "client/site/session.h"

namespace sekisho::client {

inline constexpr int kStdioUpdate = 7;  // of GRAM's signals

// The reason why no site would take it, if there is one.
absl::Status CheckUpdate(const std::string& update);

// What a good restart says of the output, as an update of it; nothing: it says nothing.
std::optional<std::string> UpdateIn(const std::string& restart);

awaitable<absl::Status> Redirect(Session& session, std::string job_id, std::string update);

}  // namespace sekisho::client
