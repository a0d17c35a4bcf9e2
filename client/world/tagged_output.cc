// SPDX-License-Identifier: Apache-2.0
#include "client/world/tagged_output.h"

#include <fmt/format.h>

namespace sekisho::client {

std::string TaggedOutput::Add(int rank, const std::string& site, int stream,
                              std::string_view data) {
  Line& line = lines_[{stream, rank}];
  line.site = site;
  std::string out;
  for (const char c : data) {
    line.text += c;
    if (c == '\n' || line.text.size() >= kLineMost) {
      out += fmt::format("[{},{}] {}{}", rank, site, line.text, c == '\n' ? "" : "\n");
      line.text.clear();
    }
  }
  return out;
}

std::string TaggedOutput::Rest(int stream) {
  std::string out;
  for (auto& [key, line] : lines_) {
    if (key.first == stream && !line.text.empty()) {
      out += fmt::format("[{},{}] {}\n", key.second, line.site, line.text);
      line.text.clear();
    }
  }
  return out;
}

}  // namespace sekisho::client
