// SPDX-License-Identifier: Apache-2.0
// The table behind gram_errors.h.
#include "rsl/gram_errors.h"

namespace sekisho::rsl {
namespace {

constexpr GramError kErrors[] = {
#define GRAM_ERROR(number, name, gloss) {number, #name, gloss},
#include "rsl/gram_errors.inc"
#undef GRAM_ERROR
};

}  // namespace

std::span<const GramError> GramErrors() { return kErrors; }

const GramError* FindGramError(int number) {
  if (number < 1 || number > static_cast<int>(std::size(kErrors))) {
    return nullptr;
  }
  return &kErrors[number - 1];
}

std::string_view GramErrorName(int number) {
  if (number == gram::SUCCESS) {
    return "SUCCESS";
  }
  const GramError* error = FindGramError(number);
  return error == nullptr ? "UNKNOWN" : error->name;
}

}  // namespace sekisho::rsl
