// SPDX-License-Identifier: Apache-2.0
// Numbers as they stand in job files, arguments and the environment.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace sekisho::pm {

// Digits and nothing else: no sign, no blank.  False, also for a null pointer, and `number` is as
// it was.
inline bool ReadNumber(const char* text, unsigned long least, unsigned long most,
                       unsigned long& number) {
  if (text == nullptr) return false;
  const std::string_view digits(text);
  const char* const end = digits.data() + digits.size();
  unsigned long read = 0;
  const auto [rest, error] = std::from_chars(digits.data(), end, read);
  if (error != std::errc() || rest != end || read < least || read > most) return false;
  number = read;
  return true;
}

}  // namespace sekisho::pm
