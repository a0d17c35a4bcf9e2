// SPDX-License-Identifier: Apache-2.0
// How often a database was made durable.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

namespace sekisho::test {

// The transactions in its write-ahead log, https://www.sqlite.org/fileformat2.html, section 4.1: frames that say how
// large the database is after them.
inline size_t CommitsIn(const std::string& database) {
  std::ifstream file(database + "-wal", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = at; i < at + 4; ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes.at(i));
    }
    return value;
  };
  constexpr size_t header = 32, frame_header = 24;
  size_t commits = 0;
  for (size_t at = header; at + frame_header <= bytes.size(); at += frame_header + number(8)) {
    const bool is_of_this_log = number(at + 8) == number(16) && number(at + 12) == number(20);
    commits += is_of_this_log && number(at + 4) != 0;
  }
  return commits;
}

}  // namespace sekisho::test
