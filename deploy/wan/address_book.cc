// SPDX-License-Identifier: Apache-2.0
// See address_book.h.
#include "deploy/wan/address_book.h"

#include <algorithm>

namespace sekisho::wan {

std::optional<AddressBook> AddressBook::Make(const std::vector<Host>& hosts, std::string& error) {
  AddressBook book;
  for (size_t i = 0; i < hosts.size(); ++i) {
    for (const Prefix& prefix : hosts[i].prefixes) {
      book.ranges_.push_back({prefix.first(), prefix.last(), static_cast<int>(i)});
    }
  }
  std::sort(book.ranges_.begin(), book.ranges_.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  for (size_t i = 1; i < book.ranges_.size(); ++i) {
    const Range& low = book.ranges_[i - 1];
    const Range& high = book.ranges_[i];
    if (high.first <= low.last) {
      error = "addresses of " + hosts[low.host].name + " and " + hosts[high.host].name +
              " overlap at " + ToString(high.first);
      return std::nullopt;
    }
  }
  return book;
}

int AddressBook::HostOf(uint32_t address) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](uint32_t a, const Range& range) { return a < range.first; });
  if (after == ranges_.begin() || address > (--after)->last) return -1;
  return after->host;
}

}  // namespace sekisho::wan
