// SPDX-License-Identifier: Apache-2.0
#include "glue/urn.h"

#include <charconv>

#include <fmt/format.h>

namespace sekisho::glue {
namespace {

bool IsSafe(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._-:/@").find(c) != std::string_view::npos;
}

}  // namespace

std::string ToUrnPart(std::string_view name) {
  std::string part;
  for (const char c : name) {
    part += IsSafe(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return part;
}

std::string FromUrnPart(std::string_view part) {
  std::string name;
  for (size_t i = 0; i < part.size(); ++i) {
    unsigned char byte = 0;
    const char* digits = part.data() + i + 1;
    if (part[i] == '%' && i + 2 < part.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      name += char(byte);
      i += 2;
    } else {
      name += part[i];
    }
  }
  return name;
}

}  // namespace sekisho::glue
