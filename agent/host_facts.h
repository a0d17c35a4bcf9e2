// SPDX-License-Identifier: Apache-2.0
// What a node tells of itself: processors, memory, load.  Parsers are pure.
#pragma once

#include <cstdint>
#include <string>

namespace sekisho::agent {

struct HostFacts {
  std::string boot_id;
  int processors = 0;  // that we may use
  int64_t memory_mb = 0;
  std::string architecture;
  std::string os;
};
HostFacts ReadHostFacts();

struct HostLoad {
  double load = 0;  // mean of a minute
  int64_t free_memory_mb = 0;
};
HostLoad ReadHostLoad();

double ParseLoad(const std::string& loadavg);                                // of /proc/loadavg
int64_t ParseMeminfoMb(const std::string& meminfo, const std::string& key);  // of /proc/meminfo
std::string ParseOsName(const std::string& os_release);                      // PRETTY_NAME

}  // namespace sekisho::agent
