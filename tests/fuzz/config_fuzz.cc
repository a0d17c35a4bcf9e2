// SPDX-License-Identifier: Apache-2.0
// Any bytes give each daemon a configuration, or an error that names the file.  The corpus is deploy/examples.
#include <cstdint>

#include "agent/config.pb.h"
#include "allocator/config.pb.h"
#include "common/config.h"
#include "common/refusal.h"
#include "directory/config.pb.h"
#include "gatekeeper/config.pb.h"
#include "jobmanager/config.pb.h"
#include "nxproxy/config.pb.h"
#include "qserver/config.pb.h"

namespace {

template <typename Config>
void Read(const std::string& text) {
  Config config;
  const absl::Status parsed = sekisho::ParseConfigInto(text, "fuzz", config);
  CHECK(parsed.ok() || sekisho::Message(parsed).starts_with("fuzz:"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Read<sekisho::agent::Config>(text);
  Read<sekisho::allocator::Config>(text);
  Read<sekisho::directory::Config>(text);
  Read<sekisho::gatekeeper::Config>(text);
  Read<sekisho::jobmanager::Config>(text);
  Read<sekisho::nxproxy::Config>(text);
  Read<sekisho::qserver::Config>(text);
  return 0;
}
