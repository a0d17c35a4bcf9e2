// SPDX-License-Identifier: Apache-2.0
// RSL that is refused before any site is asked.
#pragma once

#include "common/refusal.h"
#include "rsl/error.h"

namespace sekisho::client {

inline absl::Status BadRsl(const rsl::Error& error) {
  return Refuse(absl::StatusCode::kInvalidArgument, error.gram_code, error.Reason(),
                !error.remedy.empty() ? error.remedy
                                      : "correct it there (docs/protocol/1-rsl.md); `sekisho rsl check FILE` reads it without a site");
}

}  // namespace sekisho::client
