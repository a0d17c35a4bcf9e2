// SPDX-License-Identifier: Apache-2.0
#include "client/site/harmless.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/utf8.h"

namespace sekisho::client {
namespace {

// How many bytes at the front of `text`, which is UTF-8, are one character that does things to a terminal.
size_t HarmfulBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  if (byte(0) < 0x20 || byte(0) == 0x7f) {
    return 1;
  }
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) {  // U+0080 to U+009F: C1
    return 2;
  }
  const bool is_mark = byte(0) == 0xe2 && byte(1) == 0x80 &&
                       ((byte(2) >= 0x8e && byte(2) <= 0x8f) || (byte(2) >= 0xa8 && byte(2) <= 0xae));
  const bool is_isolate = byte(0) == 0xe2 && byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return is_mark || is_isolate ? 3 : 0;  // U+200E, U+200F, U+2028 to U+202E; U+2066 to U+2069
}

}  // namespace

std::string Harmless(const std::string& text) {
  const std::string valid = ToUtf8(text);
  std::string out;
  for (size_t i = 0; i < valid.size();) {
    const size_t harmful = HarmfulBytes(std::string_view(valid).substr(i));
    if (harmful == 0) {
      out += valid[i++];
      continue;
    }
    for (const size_t end = i + harmful; i < end; ++i) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(valid[i]));
    }
  }
  return out;
}

std::string HarmlessLines(const std::string& text) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += Harmless(text.substr(begin, end - begin));
    out += text.substr(end, 1);
    begin = end + 1;
  }
  return out;
}

}  // namespace sekisho::client
