// SPDX-License-Identifier: Apache-2.0
#include "agent/rsh/command_line.h"

#include <cstring>

namespace sekisho::agent::rsh {
namespace {

constexpr char kOptionsWithValue[] = "BbcDEeFIiJLlmOopQRSWw";  // ssh(1); -l also of rsh(1)

}  // namespace

std::optional<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  size_t at = 0;
  for (; at < arguments.size(); ++at) {
    const std::string& word = arguments[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      break;
    }
    for (size_t i = 1; i < word.size(); ++i) {  // flags may be joined, the last may take a value
      line.no_input = line.no_input || word[i] == 'n';
      if (std::strchr(kOptionsWithValue, word[i]) != nullptr) {
        at += i + 1 == word.size() ? 1 : 0;
        break;
      }
    }
  }
  if (at >= arguments.size()) {
    return std::nullopt;
  }
  line.node = arguments[at].substr(arguments[at].find('@') + 1);  // tasks have one account only
  for (++at; at < arguments.size(); ++at) {
    line.command += (line.command.empty() ? "" : " ") + arguments[at];
  }
  if (line.node.empty() || line.command.empty()) {
    return std::nullopt;
  }
  return line;
}

}  // namespace sekisho::agent::rsh
