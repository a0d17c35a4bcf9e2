// SPDX-License-Identifier: Apache-2.0
#include "client/site/outage.h"

#include <algorithm>

namespace sekisho::client {
namespace {

constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::milliseconds kLongestPause{5'000};

}  // namespace

bool Outage::Begin(Clock::time_point now) {
  if (is_open_) {
    return false;
  }
  is_open_ = true;
  until_ = now + patience_;
  pause_ = kFirstPause;
  return true;
}

std::chrono::milliseconds Outage::NextPause(Clock::time_point now) {
  const auto left = std::max(std::chrono::ceil<std::chrono::milliseconds>(until_ - now), std::chrono::milliseconds(0));
  const auto most = pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
  return std::min(left, std::chrono::milliseconds(most.count() / 2 + int64_t(random_() % uint64_t(most.count() / 2 + 1))));
}

}  // namespace sekisho::client
