// SPDX-License-Identifier: Apache-2.0
// What a user is told when something is refused: a Status whose payload carries GRAM's error number and
// the remedy, so that code, reason and remedy arrive together.  docs/protocol/4-submission.md.
#pragma once

#include <string>

#include "common/status.h"

namespace sekisho {

// `gram_code` 0 = none of GRAM's.  `remedy` is what the user can do, one sentence, may be empty.
absl::Status Refuse(absl::StatusCode code, int gram_code, const std::string& message,
                    const std::string& remedy);

int GramCode(const absl::Status& status);           // 0 if it carries none
std::string Remedy(const absl::Status& status);     // "" if it carries none
std::string Message(const absl::Status& status);

// Code and remedy as they travel beside a message: "<gram code>\n<remedy>", "" if there are none.
std::string RefusalPayload(const absl::Status& status);
absl::Status WithRefusalPayload(absl::Status status, const std::string& payload);

}  // namespace sekisho
