// SPDX-License-Identifier: Apache-2.0
// Protobuf refuses a message whose strings are not UTF-8.  Text from outside (file names, a kernel's or a
// program's words) is made so before it goes into one.  Standard library only.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace sekisho {

// How many of the first bytes of `text` are whole UTF-8 characters.
inline size_t ValidUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto byte = [&](size_t i) {
      return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
    };
    const unsigned lead = byte(0);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length == 0 || lead > 0xF4 || (lead == 0xE0 && byte(1) < 0xA0) ||
        (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF0 && byte(1) < 0x90) ||
        (lead == 0xF4 && byte(1) > 0x8F)) {
      return at;
    }
    for (size_t i = 1; i < length; ++i) {
      if ((byte(i) & 0xC0) != 0x80) {
        return at;
      }
    }
    at += length;
  }
  return at;
}

// At most `most` bytes of it, with a '?' for each byte that is not part of a character.  A character that
// `most` would cut in two is left out.
inline std::string ToUtf8(std::string_view text, size_t most = std::string_view::npos) {
  std::string out;
  while (!text.empty() && out.size() < most) {
    const size_t whole = ValidUtf8(text);
    size_t taken = std::min(whole, most - out.size());
    while (taken > 0 && taken < whole && (static_cast<unsigned char>(text[taken]) & 0xC0) == 0x80) {
      --taken;
    }
    out += text.substr(0, taken);
    if (taken < whole) {
      break;
    }
    text.remove_prefix(whole);
    if (!text.empty() && out.size() < most) {
      out += '?';
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace sekisho
