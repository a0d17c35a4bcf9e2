// SPDX-License-Identifier: Apache-2.0
// See graph.h.
#include "deploy/wan/graph.h"

#include <arpa/inet.h>

#include <charconv>

namespace sekisho::wan {

bool ParsePrefix(const std::string& text, Prefix& prefix) {
  const size_t slash = text.find('/');
  in_addr address;
  if (inet_pton(AF_INET, text.substr(0, slash).c_str(), &address) != 1) return false;
  int length = 32;
  if (slash != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + slash + 1, end, length);
    if (error != std::errc() || rest != end || length < 0 || length > 32) return false;
  }
  prefix = {ntohl(address.s_addr), length};
  return true;
}

std::string ToString(uint32_t address) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += std::to_string(address >> shift & 0xff);
    if (shift > 0) text += '.';
  }
  return text;
}

}  // namespace sekisho::wan
