// SPDX-License-Identifier: Apache-2.0
#include "common/identity/signing_policy.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include <fmt/format.h>

#include "common/identity/dn.h"
#include "common/refusal.h"

namespace sekisho::identity {
namespace {

constexpr size_t kPolicyBytesMax = 1 << 20;

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::string Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return std::string(text);
}

// The next word of `line`, or what stands between single or double quotes; `line` moves behind it.
// nullopt at the end of the line; InvalidArgument if a quote is not closed.
absl::StatusOr<std::optional<std::string>> NextWord(std::string_view& line) {
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())) != 0) {
    line.remove_prefix(1);
  }
  if (line.empty() || line.front() == '#') {
    return std::optional<std::string>();
  }
  if (const char quote = line.front(); quote == '\'' || quote == '"') {
    const size_t end = line.find(quote, 1);
    if (end == std::string_view::npos) {
      return absl::InvalidArgumentError(
          fmt::format("expected a closing {} , saw the line end", quote));
    }
    std::string word(line.substr(1, end - 1));
    line.remove_prefix(end + 1);
    return std::optional<std::string>(std::move(word));
  }
  size_t end = 0;
  while (end < line.size() && std::isspace(static_cast<unsigned char>(line[end])) == 0) {
    ++end;
  }
  std::string word(line.substr(0, end));
  line.remove_prefix(end);
  return std::optional<std::string>(std::move(word));
}

absl::StatusOr<std::vector<std::string>> Words(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    ASSIGN_OR_RETURN(std::optional<std::string> word, NextWord(line));
    if (!word.has_value()) {
      return words;
    }
    words.push_back(*std::move(word));
  }
}

// `"/C=JP/*" "/C=KR/*"`: the patterns inside the outer quotes; without inner quotes, words.
absl::StatusOr<std::vector<std::string>> Patterns(const std::vector<std::string>& words) {
  std::vector<std::string> patterns;
  for (size_t i = 2; i < words.size(); ++i) {
    ASSIGN_OR_RETURN(std::vector<std::string> inner, Words(words[i]));
    for (const std::string& pattern : inner) {
      patterns.push_back(NormalizeDn(Trim(pattern)));
    }
  }
  return patterns;
}

}  // namespace

bool MatchesPattern(std::string_view pattern, std::string_view text) {
  // Greedy with one point of return: linear in practice, quadratic at worst.
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || Lower(pattern[p]) == Lower(text[t]))) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

absl::StatusOr<SigningPolicy> SigningPolicy::Parse(std::string_view text) {
  if (text.size() > kPolicyBytesMax) {
    return absl::InvalidArgumentError(fmt::format(
        "signing policy of {} bytes, more than the {} allowed", text.size(), kPolicyBytesMax));
  }
  SigningPolicy policy;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));

    absl::StatusOr<std::vector<std::string>> words = Words(line);
    if (!words.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("line {}: {}", number, Message(words.status())));
    }
    if (words->empty()) {
      continue;
    }
    const std::string& keyword = words->front();
    if (keyword.starts_with("access_id_")) {
      if (words->size() != 3) {
        return absl::InvalidArgumentError(fmt::format(
            "line {}: expected access_id_CA X509 'DN', saw {} words", number, words->size()));
      }
      // Entries of other kinds (access_id_USER ...) name no authority.
      policy.entries_.push_back(
          {keyword == "access_id_CA" ? NormalizeDn((*words)[2]) : "", false, {}});
      continue;
    }
    if (policy.entries_.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("line {}: expected access_id_CA first, saw {}", number, keyword));
    }
    Entry& entry = policy.entries_.back();
    if (keyword == "pos_rights") {
      if (words->size() == 3 && (*words)[1] == "globus" && (*words)[2] == "CA:sign") {
        entry.may_sign = true;
      }
    } else if (keyword == "cond_subjects") {
      absl::StatusOr<std::vector<std::string>> patterns = Patterns(*words);
      if (!patterns.ok() || patterns->empty()) {
        return absl::InvalidArgumentError(
            fmt::format("line {}: expected cond_subjects globus '\"pattern\" ...'", number));
      }
      entry.subjects.insert(entry.subjects.end(), patterns->begin(), patterns->end());
    } else if (keyword != "neg_rights" && !keyword.starts_with("cond_")) {
      return absl::InvalidArgumentError(fmt::format(
          "line {}: expected access_id_CA, pos_rights or cond_subjects, saw {}", number, keyword));
    }
  }
  return policy;
}

bool SigningPolicy::Allows(std::string_view authority, std::string_view subject) const {
  for (const Entry& entry : entries_) {
    const bool applies = entry.authority == "*" || SameDn(entry.authority, authority);
    if (!applies || !entry.may_sign) {
      continue;
    }
    for (const std::string& pattern : entry.subjects) {
      if (MatchesPattern(pattern, NormalizeDn(subject))) {
        return true;
      }
    }
  }
  return false;
}

bool SigningPolicy::Names(std::string_view authority) const {
  for (const Entry& entry : entries_) {
    if (entry.authority == "*" || SameDn(entry.authority, authority)) {
      return true;
    }
  }
  return false;
}

}  // namespace sekisho::identity
