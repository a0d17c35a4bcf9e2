// SPDX-License-Identifier: Apache-2.0
// Errors about a job's credential that its user can meet: docs/protocol/19-delegation.md.
#pragma once

#include <string>

#include <fmt/format.h>

#include "common/refusal.h"

namespace sekisho::qserver::errors {

inline absl::Status NoCredentialWanted(const std::string& job_id) {
  return Refuse(absl::StatusCode::kFailedPrecondition, 0,
                fmt::format("job {} has no credential: its user did not ask for one", job_id),
                "submit with --delegate");
}

inline absl::Status CredentialOfItsArray(const std::string& element, const std::string& array) {
  return Refuse(absl::StatusCode::kFailedPrecondition, 0,
                fmt::format("{} is an element of {}: all elements share their array's credential", element, array),
                "name the array: sekisho proxy refresh " + array);
}

inline absl::Status NoCredentialAfter(const std::string& job_id, const std::string& state) {
  return Refuse(absl::StatusCode::kFailedPrecondition, 0,
                fmt::format("job {} is {}: its credential is gone, and it needs no other", job_id, state),
                "nothing is to be done: `sekisho output` still shows what it wrote");
}

// Aborted: the client asks for another offer by itself.
inline absl::Status NoSuchOffer(const std::string& job_id) {
  return Refuse(absl::StatusCode::kAborted, 0,
                fmt::format("the certificate is for no key that is offered for job {} now", job_id),
                "do it again: sekisho proxy refresh JOB");
}

inline absl::Status BadCredential(const absl::Status& why) {
  return Refuse(absl::StatusCode::kInvalidArgument, 7,
                fmt::format("the certificates cannot be a job's credential: {}", Message(why)),
                "make a new proxy: sekisho proxy init");
}

inline absl::Status ForeignCredential(const std::string& subject, const std::string& owner) {
  return Refuse(absl::StatusCode::kPermissionDenied, 7,
                fmt::format("the credential is of {}, the job of {}", subject, owner), "delegate your own");
}

inline absl::Status CredentialNotKept(const absl::Status& why) {
  return Refuse(why.code(), 0, fmt::format("the job's credential cannot be put in place: {}", Message(why)),
                "see the account's quota, and its rights at $HOME/.sekisho");
}

inline absl::Status CredentialDidNotCome(int64_t hours) {
  return Refuse(absl::StatusCode::kDeadlineExceeded, 29,
                fmt::format("its user's credential did not come within {} h", hours),
                "submit it again; after a link was lost: sekisho proxy refresh JOB");
}

inline absl::Status TooShortLived(const std::string& text) {
  return Refuse(absl::StatusCode::kFailedPrecondition, 131, text,
                "make a longer one: sekisho proxy init --valid H:M, or lower max_wall_time");
}

}  // namespace sekisho::qserver::errors
