// SPDX-License-Identifier: Apache-2.0
// sekisho rsl check|format: looks at RSL without a site or a credential.
#pragma once

#include <iosfwd>
#include <string>

namespace CLI {
class App;
}

namespace sekisho::client {

void AddRslVerb(CLI::App& app, int& exit_code);

// What the verb does, with its streams given.  `source` is a file, "-" for `in`, or the text itself
// if it begins with &, +, | or (.  Returns the exit code: 0, or 64 with the reason on `err`.
struct RslStreams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
};
int CheckRsl(const std::string& source, bool is_grammar_only, bool is_json, RslStreams streams);
int FormatRsl(const std::string& source, bool is_one_line, RslStreams streams);

}  // namespace sekisho::client
