// SPDX-License-Identifier: Apache-2.0
// PMI-1, what MPICH's ranks speak to their process manager: a line a command, KEY=VALUE with blanks
// between, the value of `value` up to the line's end.  docs/protocol/15-mpirun.md, "PMI-1".  Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sekisho::agent {

inline constexpr size_t kPmiLineMax = 8192;
inline constexpr size_t kPmiNameMax = 256;
inline constexpr size_t kPmiKeyMax = 64;
inline constexpr size_t kPmiValueMax = 1024;

struct PmiCommand {
  std::string name;  // of cmd=
  std::map<std::string, std::string> values;

  // "" if there is none.
  const std::string& Get(const std::string& key) const;

  friend bool operator==(const PmiCommand&, const PmiCommand&) = default;
};

// `line` without its end.  Nothing if it names no command, or holds what is no KEY=VALUE.
std::optional<PmiCommand> ParsePmi(std::string_view line);

// What is put before a barrier is said to all others after it.  Many such texts one behind the
// other are one again.
using PmiPairs = std::map<std::string, std::string>;
bool IsPmiPair(const std::string& key, const std::string& value);
std::string EncodePmiPairs(const PmiPairs& pairs);
// The later of two values of a key counts.  Nothing if the text is cut off or too long a key is in
// it.
std::optional<PmiPairs> DecodePmiPairs(std::string_view text);

}  // namespace sekisho::agent
