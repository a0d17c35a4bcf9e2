// SPDX-License-Identifier: Apache-2.0
// What sekisho-pmd says of contexts (transport/pm/daemon/context_top.h), as data and for people.
// Pure.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace sekisho::client {

// Takes the line away that ends an unfinished answer: with what to go on.
std::optional<std::uint16_t> TakeMore(std::string& text);

// Of one context: its numbers, an object for each other word, and "peers".
nlohmann::json TopAsJson(const std::string& text);
std::string TopAsText(const nlohmann::json& top);

// An object for each context.
nlohmann::json ListAsJson(const std::string& text);

}  // namespace sekisho::client
