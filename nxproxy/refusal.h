// SPDX-License-Identifier: Apache-2.0
// Why the relay says no: a code of the protocol, the policy's rule, and what was expected and seen.
#pragma once

#include <optional>
#include <string>

#include "nxproxy/wire/error.h"

namespace sekisho::nxproxy {

struct Refusal {
  wire::Code code = wire::Code::kInternal;
  std::string words;
  std::string rule;  // of docs/protocol/10-nxproxy.md, "What policy decides"; often ""
};

using MaybeRefusal = std::optional<Refusal>;

}  // namespace sekisho::nxproxy
