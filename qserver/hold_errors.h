// SPDX-License-Identifier: Apache-2.0
// Errors about jobs held back that their user can meet: docs/protocol/5-queue.md, "Holding back".
#pragma once

#include <string>

#include <fmt/format.h>

#include "common/refusal.h"

namespace sekisho::qserver::errors {

using absl::StatusCode;

inline absl::Status BadFollowed(const std::string& name) {
  return Refuse(StatusCode::kInvalidArgument, 147, fmt::format("after: expected a job's name, SITE/ID, saw '{}'", name),
                "write it as submit printed it");
}

inline absl::Status OtherSitesJob(const std::string& name, const std::string& site) {
  return Refuse(StatusCode::kInvalidArgument, 147,
                fmt::format("after: job {} is not of this site, {}", name, site),
                "only jobs of one site can run after each other");
}

inline absl::Status TooManyToFollow(size_t count, size_t most) {
  return Refuse(StatusCode::kInvalidArgument, 147, fmt::format("after: expected at most {} jobs, saw {}", most, count),
                "let one job run after the others, and the rest after that");
}

inline absl::Status NothingToFollow(const std::string& id) {
  return Refuse(StatusCode::kInvalidArgument, 147, fmt::format("after: you have no job {} here", id),
                "`sekisho list --all` shows your jobs; ended ones are forgotten after some weeks");
}

inline absl::Status NeverFollows(const std::string& why) {
  return Refuse(StatusCode::kFailedPrecondition, 17, "after: " + why,
                "submit it after one that ends well, or with after_any");
}

inline absl::Status NoEngineHolds() {
  return Refuse(StatusCode::kUnimplemented, 1, "hold, after: not for jobs of the batch system yet",
                "name the site without a service, or jobmanager-agent");
}

}  // namespace sekisho::qserver::errors
