// SPDX-License-Identifier: Apache-2.0
#include "rankmap/text.h"

#include <charconv>
#include <cmath>

#include "rankmap/errors.h"

namespace sekisho::rankmap {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

}  // namespace

bool LineReader::Next(std::vector<std::string_view>& words) {
  words.clear();
  while (words.empty()) {
    if (position_ >= text_.size()) {
      return false;
    }
    size_t end = text_.find('\n', position_);
    is_cut_ = end == std::string_view::npos;
    end = is_cut_ ? text_.size() : end;
    ++line_;
    const size_t limit = [&] {
      const size_t at = comment_ == '\0' ? std::string_view::npos
                                         : text_.substr(position_, end - position_).find(comment_);
      return at == std::string_view::npos ? end : position_ + at;
    }();
    for (size_t i = position_; i < limit;) {
      while (i < limit && IsBlank(text_[i])) {
        ++i;
      }
      const size_t first = i;
      while (i < limit && !IsBlank(text_[i])) {
        ++i;
      }
      if (i > first) {
        words.push_back(text_.substr(first, i - first));
      }
    }
    position_ = end + 1;
  }
  return true;
}

absl::Status LineReader::Error(std::string_view what) const {
  return errors::BadFile(file_, line_, what);
}

absl::StatusOr<int64_t> LineReader::Integer(std::string_view word, int64_t low, int64_t high,
                                            std::string_view name) const {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size() && value >= low && value <= high) {
    return value;
  }
  return Error(
      fmt::format("{} '{}': expected a whole number from {} to {}", name, Shown(word), low, high));
}

absl::StatusOr<double> LineReader::Positive(std::string_view word, std::string_view name) const {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size() && std::isfinite(value) &&
      value > 0) {
    return value;
  }
  return Error(fmt::format("{} '{}': expected a positive number", name, Shown(word)));
}

std::string Shown(std::string_view word) {
  std::string shown;
  for (const char c : word.substr(0, 40)) {
    shown += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return word.size() > 40 ? shown + "..." : shown;
}

}  // namespace sekisho::rankmap
