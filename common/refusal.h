// SPDX-License-Identifier: Apache-2.0
// What a user is told when something is refused: a Status whose payload carries GRAM's error number and
// the remedy, so that code, reason and remedy arrive together.  docs/protocol/4-submission.md.
#pragma once

#include <string>

#include <grpcpp/support/status.h>

#include "common/status.h"

namespace sekisho {

// `gram_code` 0 = none of GRAM's.  `remedy` is what the user can do, one sentence, may be empty.
absl::Status Refuse(absl::StatusCode code, int gram_code, const std::string& message,
                    const std::string& remedy);

int GramCode(const absl::Status& status);           // 0 if it carries none
std::string Remedy(const absl::Status& status);     // "" if it carries none
std::string Message(const absl::Status& status);

// The one conversion to and from gRPC; codes are equal, code, reason and remedy survive.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace sekisho
