// SPDX-License-Identifier: Apache-2.0
// Any bytes give a configuration or an error that names the file; the queue server's schema stands for all.
#include <cstdint>

#include "common/config.h"
#include "common/refusal.h"
#include "qserver/config.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  sekisho::qserver::Config config;
  const absl::Status parsed = sekisho::ParseConfigInto(text, "fuzz", config);
  CHECK(parsed.ok() || sekisho::Message(parsed).starts_with("fuzz:"));
  return 0;
}
