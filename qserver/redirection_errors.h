// SPDX-License-Identifier: Apache-2.0
// Errors about redirected output that its user can meet: docs/protocol/17-staging.md, "Redirection".
#pragma once

#include <string>

#include <fmt/format.h>

#include "common/log.h"
#include "common/refusal.h"

namespace sekisho::qserver::errors {

inline absl::Status CannotRedirect(const std::string& job_id, const std::string& why, const std::string& remedy) {
  return Refuse(absl::StatusCode::kFailedPrecondition, 107,
                fmt::format("cannot redirect the output of job {}: {}", job_id, why), remedy);
}

inline absl::Status TooLateToRedirect(const std::string& job_id, const std::string& state) {
  return CannotRedirect(job_id, fmt::format("it is {}, and nothing of it goes out any more", state),
                        "what the site has kept: sekisho output JOB");
}

inline absl::Status NoRedirectionInArrays(const std::string& job_id) {
  return CannotRedirect(job_id, "it is an array, or an element of one, whose streams have paths or are kept",
                        "what the site has kept: sekisho output JOB");
}

inline absl::Status WrittenByItsTasks(const std::string& job_id, const std::string& stream, const std::string& path) {
  return CannotRedirect(job_id,
                        fmt::format("its tasks write {} to {} themselves, and nothing of it passes the site", stream,
                                    Printable(path)),
                        path == "/dev/null" ? "submit without it: the site keeps what comes"
                                            : "see the file: sekisho get JOB PATH");
}

inline absl::Status GoneAlready(const std::string& job_id, const std::string& stream, const std::string& destination) {
  return CannotRedirect(job_id, fmt::format("its {} has gone to {} already", stream, Printable(destination)),
                        "what the site has kept: sekisho output JOB");
}

}  // namespace sekisho::qserver::errors
