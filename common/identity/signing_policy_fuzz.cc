// SPDX-License-Identifier: Apache-2.0
// Any bytes as a signing policy.
#include "common/identity/signing_policy.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto policy = sekisho::identity::SigningPolicy::Parse(text);
  if (policy.ok()) {
    (void)policy->Allows("/C=JP/O=Grid/CN=CA", "/C=JP/O=Grid/CN=Taro");
    (void)policy->Names("/C=JP/O=Grid/CN=CA");
  }
  return 0;
}
