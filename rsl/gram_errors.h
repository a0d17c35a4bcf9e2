// SPDX-License-Identifier: Apache-2.0
// GRAM's error numbers, 1 to 167, by name: docs/protocol/1-rsl.md, "Error numbers".
#pragma once

#include <span>
#include <string_view>

namespace sekisho::rsl {

// The names are the protocol's own, so that `gram::RSL_COUNT` can be searched for in any of its
// documents.
namespace gram {
enum Code : int {
  SUCCESS = 0,
#define GRAM_ERROR(number, name, gloss) name = number,
#include "rsl/gram_errors.inc"
#undef GRAM_ERROR
};
}  // namespace gram

struct GramError {
  int number;
  std::string_view name;   // "RSL_COUNT"
  std::string_view gloss;  // "count malformed"
};

// All of them, in the order of their numbers.
std::span<const GramError> GramErrors();

// Null if `number` is not an error number of GRAM.
const GramError* FindGramError(int number);

// "RSL_COUNT"; "SUCCESS" for 0; "UNKNOWN" for a number that GRAM does not have.
std::string_view GramErrorName(int number);

}  // namespace sekisho::rsl
