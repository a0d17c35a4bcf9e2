// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/refusal_log.h"

#include "common/log.h"

namespace sekisho::nxproxy {

bool RefusalLog::Add(const Refusal& refusal, const std::string& who, int64_t now_ms) {
  std::string name = wire::Info(refusal.code).name;
  if (!refusal.rule.empty()) {
    name += "/" + refusal.rule;
  }
  ++counts_[name];
  constexpr int64_t kMinute = 60'000;
  if (now_ms / kMinute != minute_) {
    minute_ = now_ms / kMinute;
    logged_.clear();
  }
  if (logged_.size() >= kSourcesMax || !logged_.insert(name + " " + who).second) {
    return false;
  }
  spdlog::warn("relay refused {} who={}: {}", name, Printable(who), Printable(refusal.words));
  return true;
}

}  // namespace sekisho::nxproxy
