// SPDX-License-Identifier: Apache-2.0
// Every refusal of the gatekeeper that a user can meet: docs/operations/gatekeeper.md, "What users see".
// Each carries GRAM's error number and a remedy.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/identity/reason_of.h"
#include "common/refusal.h"

namespace sekisho::gatekeeper::errors {

// GRAM's numbers, as far as a front door meets them.
enum Gram {
  kAuthorization = 7,
  kGatekeeperMisconfigured = 47,
  kContactingJobManager = 79,
  kServiceNotFound = 93,
};

inline absl::Status NotAuthenticated(const absl::Status& why) {
  const absl::StatusCode code = why.code() == absl::StatusCode::kPermissionDenied
                                    ? absl::StatusCode::kPermissionDenied
                                    : absl::StatusCode::kUnauthenticated;
  const auto reason = identity::ReasonOf(why);
  if (reason && identity::LiesInTheTrustDirectory(*reason)) {
    return Refuse(code, kAuthorization, "the gatekeeper cannot judge any credential: " + Message(why),
                  "tell the site's administrator: it is the gatekeeper's directory of authorities");
  }
  return Refuse(code, kAuthorization, "the gatekeeper refuses the credential: " + Message(why),
                Remedy(why).empty() ? "check it with 'sekisho proxy info', or make a new proxy with "
                                      "'sekisho proxy init'"
                                    : Remedy(why));
}

inline absl::Status LimitedProxy(const std::string& subject, const std::string& service) {
  return Refuse(absl::StatusCode::kPermissionDenied, kAuthorization,
                fmt::format("service '{}' does not accept limited proxies, and \"{}\" came with one",
                            service, subject),
                "use a full proxy: 'sekisho proxy init'");
}

inline absl::Status Unmapped(const std::string& subject, const std::string& site,
                             const std::string& map_file, const std::string& ask) {
  return Refuse(
      absl::StatusCode::kPermissionDenied, kAuthorization,
      fmt::format("site {} has no account for \"{}\": not in its {}", site, subject, map_file),
      fmt::format("ask {} to add the line: \"{}\" ACCOUNT", ask, subject));
}

inline absl::Status OtherAccount(const std::string& subject, const std::string& asked,
                                 const std::vector<std::string>& mapped) {
  return Refuse(absl::StatusCode::kPermissionDenied, kAuthorization,
                fmt::format("\"{}\" may not use account '{}'", subject, asked),
                fmt::format("ask for one of: {}", fmt::join(mapped, ", ")));
}

inline absl::Status NoSuchService(const std::string& name, const std::vector<std::string>& known) {
  return Refuse(absl::StatusCode::kFailedPrecondition, kServiceNotFound,
                fmt::format("there is no service '{}' here", name),
                fmt::format("use one of: {}", fmt::join(known, ", ")));
}

inline absl::Status NoSuchMethod(const std::string& method) {
  return Refuse(absl::StatusCode::kUnimplemented, 0,
                fmt::format("there is no method {} here", method.substr(0, 100)),
                "use a client of this version");
}

inline absl::Status TooManyCalls(const std::string& address, int limit) {
  return Refuse(absl::StatusCode::kResourceExhausted, 0,
                fmt::format("{} calls from {} are in progress, and that is the limit", limit, address),
                "let some of them end, or ask the site to raise limits.calls_per_peer");
}

inline absl::Status TooManyConnections(const std::string& address) {
  return Refuse(absl::StatusCode::kResourceExhausted, 0,
                fmt::format("all the connections that {} may have here are in use", address),
                "let some of them end, or ask the site to raise limits.per_peer");
}

inline absl::Status NoAuditLog(const absl::Status& why) {
  return Refuse(absl::StatusCode::kUnavailable, kGatekeeperMisconfigured,
                "the gatekeeper serves nobody while it cannot keep its audit log: " + Message(why),
                "tell the site's administrator to make room for it, and try again");
}

inline absl::Status TooManyCallsOfSubject(const std::string& subject, int limit) {
  return Refuse(absl::StatusCode::kResourceExhausted, 0,
                fmt::format("{} calls of \"{}\" are in progress, and that is the limit", limit, subject),
                "let some of them end, or ask the site to raise limits.calls_per_subject");
}

inline absl::Status NothingAsked(int seconds) {
  return Refuse(absl::StatusCode::kDeadlineExceeded, 0,
                fmt::format("the call's first message was not there within {} s", seconds),
                "ask again over a faster link, ask for less at a time, or ask the site to raise limits.request_s");
}

inline absl::Status BadAccount(const std::string& account, const std::string& why) {
  return Refuse(absl::StatusCode::kFailedPrecondition, kGatekeeperMisconfigured,
                fmt::format("the gatekeeper cannot use account '{}': {}", account, why),
                "tell the site's administrator: its grid-mapfile names an account that cannot be used");
}

inline absl::Status CannotStart(const std::string& account, const std::string& why) {
  return Refuse(absl::StatusCode::kUnavailable, kGatekeeperMisconfigured,
                fmt::format("the jobmanager of '{}' does not start: {}", account, why),
                "tell the site's administrator; the gatekeeper's log says more");
}

inline absl::Status JobManagerLost(const std::string& account) {
  return Refuse(absl::StatusCode::kUnavailable, kContactingJobManager,
                fmt::format("the jobmanager of '{}' went away during the call; it is being restarted",
                            account),
                "ask again: jobs are not affected, and a repeated submit does no harm");
}

inline absl::Status Stopping() {
  return Refuse(absl::StatusCode::kUnavailable, kContactingJobManager, "the gatekeeper is stopping",
                "ask again in a moment: jobs are not affected");
}

}  // namespace sekisho::gatekeeper::errors
