// SPDX-License-Identifier: Apache-2.0
#include "rankmap/qaplib.h"

#include <algorithm>
#include <iterator>

#include "rankmap/errors.h"
#include "rankmap/text.h"

namespace sekisho::rankmap {
namespace {

struct Number {
  int64_t value = 0;
  int line = 0;
};

// All numbers of the file; separators are blanks and commas.
absl::StatusOr<std::vector<Number>> Numbers(std::string_view text, std::string_view file,
                                            size_t most, bool must_end) {
  LineReader reader(text, file);
  std::vector<std::string_view> words;
  std::vector<Number> numbers;
  while (reader.Next(words)) {
    for (const std::string_view word : words) {
      for (size_t first = 0; first < word.size();) {
        const size_t end = std::min(word.find(',', first), word.size());
        if (end > first) {
          std::string_view digits = word.substr(first, end - first);
          digits = digits.ends_with(".0") ? digits.substr(0, digits.size() - 2) : digits;
          ASSIGN_OR_RETURN(const int64_t value,
                           reader.Integer(digits, 0, int64_t{1} << 50, "number"));
          numbers.push_back({value, reader.line()});
        }
        first = end + 1;
      }
    }
    if (numbers.size() > most) {
      return reader.Error(fmt::format("more than {} numbers", most));
    }
  }
  if (numbers.empty()) {
    return reader.Error("no numbers");
  }
  // What a file ends in without a newline or blank may be the beginning of a number; 0 begins none.
  const bool is_open = text.back() >= '0' && text.back() <= '9';
  if (must_end && is_open && numbers.back().value != 0) {
    return reader.CutOff();
  }
  return numbers;
}

}  // namespace

int64_t QapInstance::Cost(const std::vector<int>& permutation) const {
  int64_t cost = 0;
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      cost += a[i * size + j] * b[permutation[i] * size + permutation[j]];
    }
  }
  return cost;
}

bool IsPermutation(const std::vector<int>& list, int size) {
  std::vector<char> seen(size);
  for (const int place : list) {
    if (place < 0 || place >= size || seen[place] != 0) {
      return false;
    }
    seen[place] = 1;
  }
  return static_cast<int>(list.size()) == size;
}

absl::StatusOr<QapInstance> ParseQap(std::string_view text, std::string_view file) {
  constexpr size_t kMost =
      2 + 2 * static_cast<size_t>(QapInstance::kMaxSize) * QapInstance::kMaxSize;
  ASSIGN_OR_RETURN(const std::vector<Number> numbers, Numbers(text, file, kMost, true));
  const int64_t n = numbers[0].value;
  if (n < 1 || n > QapInstance::kMaxSize) {
    return errors::BadFile(file, numbers[0].line,
                           fmt::format("size {}: expected 1 to {}", n, QapInstance::kMaxSize));
  }
  const size_t cells = static_cast<size_t>(n) * n;
  // tai25a states its optimum between the size and the matrices.
  const size_t skip = numbers.size() == 2 + 2 * cells ? 2 : 1;
  if (numbers.size() != skip + 2 * cells) {
    return errors::BadFile(
        file, numbers.back().line,
        fmt::format("{} numbers after the size {}: expected two square matrices, {}",
                    numbers.size() - 1, n, 2 * cells));
  }
  QapInstance instance;
  instance.size = static_cast<int>(n);
  double total = 0;
  double largest = 0;
  for (size_t i = 0; i < cells; ++i) {
    instance.a.push_back(numbers[skip + i].value);
    instance.b.push_back(numbers[skip + cells + i].value);
    total += static_cast<double>(instance.a.back());
    largest = std::max(largest, static_cast<double>(instance.b.back()));
  }
  if (total * largest > 0x1.0p52) {  // solvers count in exact doubles
    return errors::TooLarge(file);
  }
  return instance;
}

absl::StatusOr<QapSolution> ParseQapSolution(std::string_view text, std::string_view file) {
  ASSIGN_OR_RETURN(const std::vector<Number> numbers,
                   Numbers(text, file, 2 + QapInstance::kMaxSize, false));
  const int64_t n = numbers[0].value;
  if (static_cast<int64_t>(numbers.size()) != n + 2) {
    return errors::BadFile(file, numbers.back().line,
                           fmt::format("expected size, value and {} numbers", n));
  }
  QapSolution solution;
  solution.value = numbers[1].value;
  std::vector<char> seen(n);
  for (size_t i = 2; i < numbers.size(); ++i) {
    const int64_t place = numbers[i].value - 1;
    if (place < 0 || place >= n || seen[place] != 0) {
      return errors::BadFile(file, numbers[i].line, "not a permutation from 1");
    }
    seen[place] = 1;
    solution.permutation.push_back(static_cast<int>(place));
  }
  return solution;
}

std::string PrintQapSolution(const QapSolution& solution) {
  std::string text = fmt::format("{} {}\n", solution.permutation.size(), solution.value);
  for (size_t i = 0; i < solution.permutation.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "{}{}", i == 0 ? "" : " ",
                   solution.permutation[i] + 1);
  }
  return text + "\n";
}

}  // namespace sekisho::rankmap
