// SPDX-License-Identifier: Apache-2.0
// What is wrong with a piece of RSL, and where.  RSL errors are not absl::Status: GRAM gives each
// its number, and a user needs the place.  Result<T> is to Error what absl::StatusOr<T> is to
// Status.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "common/status.h"

namespace sekisho::rsl {

// Both from 1; a column is one UTF-8 character.
struct Position {
  int line = 1;
  int column = 1;
};

struct Error {
  int gram_code = 0;      // of rsl/gram_errors.h
  std::string attribute;  // documented spelling; empty if the error is not about one
  Position where;
  std::string message;  // what was expected, what was seen
  std::string remedy;   // what to do, may be empty

  // "3:14: count: expected a whole number, saw "many"": for those who show number and remedy apart.
  std::string Reason() const;
  // Reason, remedy and number in one line.
  std::string ToString() const;
};

// InvalidArgument with ToString() as its message.
absl::Status ToStatus(const Error& error);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: converts
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: converts

  bool ok() const { return held_.index() == 0; }
  const Error& error() const { return std::get<1>(held_); }
  // So that ASSIGN_OR_RETURN hands an RSL error on in a function that returns absl::Status.
  absl::Status status() const { return ok() ? absl::OkStatus() : ToStatus(error()); }

  const T& operator*() const& { return std::get<0>(held_); }
  T& operator*() & { return std::get<0>(held_); }
  T&& operator*() && { return std::get<0>(std::move(held_)); }
  const T* operator->() const { return &std::get<0>(held_); }
  T* operator->() { return &std::get<0>(held_); }

 private:
  std::variant<T, Error> held_;
};

}  // namespace sekisho::rsl

// ASSIGN_OR_RETURN for a function that itself returns a Result.
#define RSL_TRY_(result, lhs, expression) \
  auto result = (expression);             \
  if (!result.ok()) {                     \
    return result.error();                \
  }                                       \
  lhs = *std::move(result)
#define RSL_TRY(lhs, expression) RSL_TRY_(SEKISHO_CONCAT(result_, __LINE__), lhs, expression)
