// SPDX-License-Identifier: Apache-2.0
// The command line.  Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sekisho::wan {

struct Options {
  bool is_tree = false;  // else pairs
  bool wants_help = false;
  std::string file;

  // tree
  std::string prefix;
  std::string hosts;
  std::string base = "10.64.0.0/10";
  std::vector<std::string> deny_inbound;

  // both
  uint64_t seed = 1;
  double dilate = 1;
  double compensate_us = 0;
  bool is_busy = false;
  int fifo = 0;  // 0 = ordinary priority
  int cpu = -1;
  int mtu = 1500;
  int ready_fd = -1;
  std::string control;
};

// `error` names the option.
std::optional<Options> ParseOptions(const std::vector<std::string>& words, std::string& error);

extern const char* const kUsage;

}  // namespace sekisho::wan
