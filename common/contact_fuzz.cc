// SPDX-License-Identifier: Apache-2.0
// Any bytes as a contact string: what parses prints to a text that parses to the same.
#include "common/contact.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<sekisho::Contact> contact = sekisho::ParseContact(text);
  if (contact.ok()) {
    const absl::StatusOr<sekisho::Contact> again = sekisho::ParseContact(ToText(*contact));
    CHECK(again.ok() && *again == *contact);
    (void)sekisho::ParseService(contact->service);
  }
  (void)sekisho::ParseService(text);
  return 0;
}
