// SPDX-License-Identifier: Apache-2.0
// Every error of probing that a user can meet.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "common/status.h"

namespace sekisho::topology::errors {

inline absl::Status CannotListen(std::string_view address, int port, std::string_view why) {
  return absl::UnavailableError(fmt::format("cannot listen on {}:{}: {}", address, port, why));
}

}  // namespace sekisho::topology::errors
