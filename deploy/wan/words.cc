// SPDX-License-Identifier: Apache-2.0
// See words.h.
#include "deploy/wan/words.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace sekisho::wan {
namespace {

template <typename T>
std::optional<T> Parse(std::string_view text, T min, T max) {
  T value{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  if (!(value >= min && value <= max)) return std::nullopt;  // not a number is in no range
  return value;
}

}  // namespace

std::vector<std::string> Words(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<std::string> words;
  for (size_t at = 0; (at = line.find_first_not_of(kBlank, at)) != line.npos && line[at] != '#';) {
    const size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<double> Number(std::string_view text, double min, double max) {
  return Parse<double>(text, min, max);
}

std::optional<int64_t> Integer(std::string_view text, int64_t min, int64_t max) {
  return Parse<int64_t>(text, min, max);
}

bool IsName(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= 64 && text[0] != '.' &&
         std::all_of(text.begin(), text.end(), fits);
}

std::string ForEachLine(std::string_view text, const std::string& file,
                        const std::function<std::string(const std::vector<std::string>&)>& read) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string> words = Words(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    const std::string wrong = read(words);
    if (!wrong.empty()) return file + ":" + std::to_string(number) + ": " + wrong;
  }
  return "";
}

}  // namespace sekisho::wan
