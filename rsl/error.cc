// SPDX-License-Identifier: Apache-2.0
// The text of an RSL error.
#include "rsl/error.h"

#include <fmt/format.h>

#include "rsl/gram_errors.h"

namespace sekisho::rsl {

std::string Error::ToString() const {
  std::string text = fmt::format("{}:{}: ", where.line, where.column);
  if (!attribute.empty() && !message.starts_with(attribute)) {
    text += attribute + ": ";
  }
  text += message;
  if (!remedy.empty()) {
    text += "; " + remedy;
  }
  return text + fmt::format(" (GRAM error {}, {})", gram_code, GramErrorName(gram_code));
}

absl::Status ToStatus(const Error& error) { return absl::InvalidArgumentError(error.ToString()); }

}  // namespace sekisho::rsl
