// SPDX-License-Identifier: Apache-2.0
#include "rsl/location.h"

#include <algorithm>
#include <cctype>

namespace sekisho::rsl {

Location ReadLocation(std::string_view text) {
  using enum Location::Kind;
  const size_t mark = text.find("://");
  const bool is_url = mark != std::string_view::npos && mark > 0 &&
                      std::all_of(text.begin(), text.begin() + long(mark), [](unsigned char c) {
                        return std::isalnum(c) || c == '+' || c == '-' || c == '.';
                      });
  if (!is_url) {
    return {kPath, std::string(text), ""};
  }
  Location location{kOther, std::string(text), std::string(text.substr(0, mark))};
  std::transform(location.scheme.begin(), location.scheme.end(), location.scheme.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  if (location.scheme == "client" || location.scheme == "file") {
    location.kind = location.scheme == "client" ? kClient : kFile;
    location.path = text.substr(mark + 3);
  } else if (location.scheme == "http" || location.scheme == "https") {
    location.kind = kWeb;
  }
  return location;
}

bool IsCacheUrl(std::string_view text) { return ReadLocation(text).scheme == "x-gass-cache"; }

std::string PlainName(std::string_view location, std::string_view fallback) {
  constexpr size_t kMost = 100;
  if (ReadLocation(location).kind == Location::Kind::kWeb) {
    location = location.substr(0, location.find_first_of("?#"));
  }
  const std::string_view name = location.substr(location.rfind('/') + 1);
  const bool is_plain = !name.empty() && name.size() <= kMost && name.front() != '.' &&
                        std::all_of(name.begin(), name.end(), [](unsigned char c) {
                          return std::isalnum(c) || c == '.' || c == '_' || c == '+' || c == '-';
                        });
  return std::string(is_plain ? name : fallback);
}

}  // namespace sekisho::rsl
