// SPDX-License-Identifier: Apache-2.0
// Errors as values: absl::Status and StatusOr, and the macros that hand them on.  Messages are built
// with fmt::format; no other Abseil type appears in our signatures (Debian's absl::string_view is not
// std::string_view).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#define SEKISHO_CONCAT_(a, b) a##b
#define SEKISHO_CONCAT(a, b) SEKISHO_CONCAT_(a, b)

#define RETURN_IF_ERROR(expression)                          \
  do {                                                       \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                        \
    }                                                        \
  } while (false)

#define SEKISHO_ASSIGN_(result, lhs, expression, ret) \
  auto result = (expression);                         \
  if (!result.ok()) {                                 \
    ret result.status();                              \
  }                                                   \
  lhs = *std::move(result)

#define ASSIGN_OR_RETURN(lhs, expression) \
  SEKISHO_ASSIGN_(SEKISHO_CONCAT(result_, __LINE__), lhs, expression, return)

// The twins for coroutines.
#define CO_RETURN_IF_ERROR(expression)                       \
  do {                                                       \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      co_return status_;                                     \
    }                                                        \
  } while (false)

#define CO_ASSIGN_OR_RETURN(lhs, expression) \
  SEKISHO_ASSIGN_(SEKISHO_CONCAT(result_, __LINE__), lhs, expression, co_return)

// A broken invariant of our own, always checked.
#define CHECK(condition)                                                               \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                    \
    }                                                                                  \
  } while (false)
