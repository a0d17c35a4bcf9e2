// SPDX-License-Identifier: Apache-2.0
// How far files are on their way, in words for a terminal.  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace sekisho::client {

class Transfers {
 public:
  // `at` of `size` bytes of this file have arrived.  What had when it is first named, has not come by us.
  void Reach(const std::string& file, uint64_t at, uint64_t size);

  bool IsComplete() const { return done_ == size_; }

  // A line of at most `columns`, `seconds` after the first was named: what, how much of it, how fast, how long yet.
  std::string Text(double seconds, int columns) const;

 private:
  struct File {
    uint64_t began, at, size;
  };
  std::map<std::string, File> files_;
  uint64_t done_ = 0, size_ = 0, moved_ = 0;  // their sums
  size_t complete_ = 0;                       // so many of them
};

}  // namespace sekisho::client
