// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/failures.h"

#include <utility>

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kWaitMs = 500;
constexpr size_t kToldMax = 256;  // of connections that nobody asked about

}  // namespace

void Failures::Take(const wire::Message& failed) {
  if (const auto asked = asked_.extract(failed.counter); !asked.empty()) {
    asked.mapped()(RefusalOf(failed));
    return;
  }
  told_[failed.counter] = RefusalOf(failed);
  if (told_.size() > kToldMax) {
    told_.erase(told_.begin());
  }
}

void Failures::Explain(uint64_t counter, wire::Code code, Then then) {
  if (const auto told = told_.extract(counter); !told.empty()) {
    then(told.mapped());
    return;
  }
  asked_[counter] = std::move(then);
  loop_.After(kWaitMs, [this, counter, code] {
    if (const auto asked = asked_.extract(counter); !asked.empty()) {
      asked.mapped()({code, wire::Info(code).words, wire::Info(code).remedy, ""});
    }
  });
}

}  // namespace sekisho::nxproxy::client
