// SPDX-License-Identifier: Apache-2.0
#include "glue/entry.h"

#include <algorithm>

namespace sekisho::glue {
namespace {

constexpr char kHex[] = "0123456789abcdef";

int HexDigit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  }
  return lower;
}

bool IsAttributeName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ';';
  });
}

void AppendHex(std::string& text, char c) {
  text += '\\';
  text += kHex[(static_cast<unsigned char>(c) >> 4) & 15];
  text += kHex[static_cast<unsigned char>(c) & 15];
}

// From `at`, up to the comma that ends it.  False if an escape is broken.
bool ReadValue(std::string_view dn, size_t& at, std::string& value) {
  size_t kept = 0;  // blanks after this are not the value's
  for (; at < dn.size() && dn[at] != ','; ++at) {
    if (dn[at] == '+' || dn[at] == '"' || dn[at] == ';') {
      return false;
    }
    if (dn[at] != '\\') {
      value += dn[at];
      kept = dn[at] == ' ' ? kept : value.size();
      continue;
    }
    if (at + 1 >= dn.size()) {
      return false;
    }
    const int high = HexDigit(dn[at + 1]);
    const int low = at + 2 < dn.size() ? HexDigit(dn[at + 2]) : -1;
    if (high >= 0 && low >= 0) {
      value += char(high * 16 + low);
      at += 2;
    } else if (high < 0) {
      value += dn[++at];
    } else {
      return false;
    }
    kept = value.size();
  }
  value.resize(kept);
  return true;
}

}  // namespace

const std::vector<std::string>& Entry::All(const std::string& attribute) const {
  static const std::vector<std::string> kNone;
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? kNone : found->second;
}

const std::string& Entry::First(const std::string& attribute) const {
  static const std::string kNone;
  const auto& values = All(attribute);
  return values.empty() ? kNone : values.front();
}

bool Entry::Is(std::string_view object_class) const {
  const auto& classes = All("objectClass");
  return std::find(classes.begin(), classes.end(), object_class) != classes.end();
}

std::optional<Names> ParseDn(std::string_view dn) {
  Names names;
  size_t at = 0;
  while (at < dn.size()) {
    while (at < dn.size() && dn[at] == ' ') {
      ++at;
    }
    const size_t equals = dn.find('=', at);
    if (equals == std::string_view::npos) {
      return std::nullopt;
    }
    std::string attribute = Lower(dn.substr(at, equals - at));
    while (!attribute.empty() && attribute.back() == ' ') {
      attribute.pop_back();
    }
    std::string value;
    at = equals + 1;
    while (at < dn.size() && dn[at] == ' ') {
      ++at;
    }
    if (!IsAttributeName(attribute) || !ReadValue(dn, at, value) || value.empty()) {
      return std::nullopt;
    }
    names.emplace_back(std::move(attribute), std::move(value));
    if (at < dn.size() && ++at == dn.size()) {
      return std::nullopt;  // a comma at the end
    }
  }
  return names;
}

std::string ToDn(const Names& names) {
  std::string dn;
  for (const auto& [attribute, value] : names) {
    dn += (dn.empty() ? "" : ",") + attribute + "=" + EscapeDnValue(value);
  }
  return dn;
}

std::string CanonicalDn(std::string_view dn) {
  const auto names = ParseDn(dn);
  return names ? ToDn(*names) : std::string(dn);
}

std::string EscapeDnValue(std::string_view value) {
  std::string text;
  for (size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    const bool is_edge = i == 0 || i + 1 == value.size();
    if (std::string_view(",+\"\\<>;=").find(c) != std::string_view::npos || static_cast<unsigned char>(c) < 0x20 ||
        c == 0x7f || (c == ' ' && is_edge) || (c == '#' && i == 0)) {
      AppendHex(text, c);
    } else {
      text += c;
    }
  }
  return text;
}

std::string ChildDn(const std::string& attribute, std::string_view value, const std::string& parent) {
  return attribute + "=" + EscapeDnValue(value) + "," + parent;
}

std::string EscapeFilterValue(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '*' || c == '(' || c == ')' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ||
        static_cast<unsigned char>(c) >= 0x7f) {
      AppendHex(text, c);
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace sekisho::glue
