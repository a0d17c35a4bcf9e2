// SPDX-License-Identifier: Apache-2.0
// What the emulator's line-by-line files have in common: words, numbers, errors that name their
// place.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sekisho::wan {

// The words of a line; a word that starts with # and all behind it are a comment.
std::vector<std::string> Words(std::string_view line);

std::vector<std::string> Split(std::string_view text, char separator);

// All of `text`, and in the range.
std::optional<double> Number(std::string_view text, double min, double max);
std::optional<int64_t> Integer(std::string_view text, int64_t min, int64_t max);

// A name of letters, digits, - _ and . that a file may be called.
bool IsName(std::string_view text);

// Gives `read` the words of each line that has any.  What it returns, if anything, is wrong with
// the line: then the result is "FILE:LINE: what".
std::string ForEachLine(std::string_view text, const std::string& file,
                        const std::function<std::string(const std::vector<std::string>&)>& read);

}  // namespace sekisho::wan
