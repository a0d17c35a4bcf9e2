// SPDX-License-Identifier: Apache-2.0
// Which host an address belongs to.  Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "deploy/wan/graph.h"

namespace sekisho::wan {

class AddressBook {
 public:
  // `error` names two hosts whose prefixes overlap.
  static std::optional<AddressBook> Make(const std::vector<Host>& hosts, std::string& error);

  // Index of the host, or -1.
  int HostOf(uint32_t address) const;

 private:
  struct Range {
    uint32_t first;
    uint32_t last;
    int host;
  };
  std::vector<Range> ranges_;  // by address
};

}  // namespace sekisho::wan
