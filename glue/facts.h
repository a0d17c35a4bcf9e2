// SPDX-License-Identifier: Apache-2.0
// What is known of a queue of a site, by the names that conditions use: docs/operations/cli.md, "Sites".  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "glue/offer.h"

namespace sekisho::glue {

// A number, a truth, or words any of which may be meant; nothing: it is not said.
using Fact = std::variant<std::monostate, int64_t, bool, std::vector<std::string>>;
using Facts = std::map<std::string, Fact>;

// What is known of one share, by the names that conditions use.
Facts FactsOf(const Offer& offer, const Share& share, int64_t now_s);

// "4", "true", "amd64,arm64", "not said".
std::string ToText(const Fact& fact);

// Names that conditions may use, each once.
const std::vector<std::string>& FactNames();

}  // namespace sekisho::glue
