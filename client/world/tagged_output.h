// SPDX-License-Identifier: Apache-2.0
// Output of many ranks as lines that say whose they are: "[RANK,SITE] text".  Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace sekisho::client {

class TaggedOutput {
 public:
  // What is to be written now: whole lines, each with its tag.  A line that has not ended waits.
  std::string Add(int rank, const std::string& site, int stream, std::string_view data);
  // What still waits of `stream`, each with its tag and a line end.
  std::string Rest(int stream);

 private:
  static constexpr size_t kLineMost = 64 << 10;  // longer ones are cut
  struct Line {
    std::string site;
    std::string text;
  };
  std::map<std::pair<int, int>, Line> lines_;  // by stream, rank
};

}  // namespace sekisho::client
