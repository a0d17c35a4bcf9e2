// SPDX-License-Identifier: Apache-2.0
// Errors about what administrators ask, and about what they have forbidden.
#pragma once

#include <string>

#include <fmt/format.h>

#include "common/refusal.h"
#include "common/status.h"

namespace sekisho::qserver::errors {

inline absl::Status NotAnAdministrator(const std::string& subject) {
  return Refuse(absl::StatusCode::kPermissionDenied, 7,
                fmt::format("{} is not an administrator of this site", subject),
                "ask one: they are listed as \"administrator\" in the queue server's configuration");
}

inline absl::Status NodeIsThere(const std::string& node) {
  return Refuse(absl::StatusCode::kFailedPrecondition, 0, fmt::format("node {} is attached: it is not lost", node),
                "cancel its jobs, or stop its agent first");
}

inline absl::Status IsBanned(const std::string& subject, const std::string& reason) {
  return Refuse(absl::StatusCode::kPermissionDenied, 7,
                fmt::format("{} is banned from this site{}{}", subject, reason.empty() ? "" : ": ", reason),
                "ask the site's administrator");
}

inline absl::Status IsAdministrator(const std::string& subject) {
  return Refuse(absl::StatusCode::kFailedPrecondition, 0,
                fmt::format("{} is an administrator of this site and cannot be banned", subject),
                "take it out of \"administrator\" in the queue server's configuration first");
}

inline absl::Status NotASubject(const std::string& seen) {
  return Refuse(absl::StatusCode::kInvalidArgument, 0,
                fmt::format("expected a subject like /O=Grid/CN=Taro, saw \"{}\"", seen),
                "`sekisho proxy info` shows one's own; the gatekeeper's audit log those of callers");
}

inline absl::Status NotBanned(const std::string& subject) {
  return Refuse(absl::StatusCode::kNotFound, 0, fmt::format("{} is not banned", subject),
                "`sekisho admin bans SITE` shows who is");
}

inline absl::Status NotDrained(const std::string& node) {
  return Refuse(absl::StatusCode::kNotFound, 0,
                node.empty() ? std::string("the site is not drained") : fmt::format("node {} is not drained", node),
                "`sekisho admin nodes SITE` shows what is");
}

inline absl::Status NoSuchNode(const std::string& node) {
  return Refuse(absl::StatusCode::kNotFound, 0, fmt::format("the site has no node {}", node),
                "`sekisho admin nodes SITE` shows what there is");
}

inline absl::Status ReasonTooLong(size_t bytes, size_t most) {
  return Refuse(absl::StatusCode::kInvalidArgument, 0,
                fmt::format("a reason has at most {} bytes, this one has {}", most, bytes), "say it shorter");
}

}  // namespace sekisho::qserver::errors
