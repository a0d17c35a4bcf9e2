// SPDX-License-Identifier: Apache-2.0
// Counts every refusal by name and rule, logs one a minute of each source.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "nxproxy/refusal.h"

namespace sekisho::nxproxy {

class RefusalLog {
 public:
  // `who` is an address or a subject.  True if it was logged.
  bool Add(const Refusal& refusal, const std::string& who, int64_t now_ms);

  const std::map<std::string, uint64_t>& counts() const { return counts_; }  // "denied/public-bind"

 private:
  static constexpr size_t kSourcesMax = 4096;
  std::map<std::string, uint64_t> counts_;
  std::set<std::string> logged_;
  int64_t minute_ = 0;
};

}  // namespace sekisho::nxproxy
