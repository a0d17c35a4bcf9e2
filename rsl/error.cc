// SPDX-License-Identifier: Apache-2.0
// The text of an RSL error.
#include "rsl/error.h"

#include <fmt/format.h>

#include "rsl/gram_errors.h"

namespace sekisho::rsl {

std::string Error::Reason() const {
  const bool is_named = attribute.empty() || message.starts_with(attribute);
  return fmt::format("{}:{}: {}{}{}", where.line, where.column, is_named ? "" : attribute,
                     is_named ? "" : ": ", message);
}

std::string Error::ToString() const {
  return fmt::format("{}{}{} (GRAM error {}, {})", Reason(), remedy.empty() ? "" : "; ", remedy,
                     gram_code, GramErrorName(gram_code));
}

absl::Status ToStatus(const Error& error) { return absl::InvalidArgumentError(error.ToString()); }

}  // namespace sekisho::rsl
