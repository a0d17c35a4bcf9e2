// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/unreached.h"

#include <utility>

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kFailedMs = 3'000;  // a peer that has ended is told of by its own site meanwhile
constexpr int64_t kAwayMs = 8'000;
constexpr size_t kPeersMax = 4096;

}  // namespace

void Unreached::OnDialled(const std::string& destination, const std::string& peer) {
  if (peers_.size() < kPeersMax) {
    peers_[destination] = peer;
  }
  last_peer_ = peer;
}

void Unreached::OnFailed(const std::string& destination, const std::string& why) {
  const auto known = peers_.find(destination);
  EndAfter(kFailedMs, known != peers_.end() ? known->second : destination, why);
}

void Unreached::OnAway(const std::string& why) {
  if (!is_away_) {
    is_away_ = true;
    EndAfter(kAwayMs, last_peer_.empty() ? "the ranks at other sites" : last_peer_, why);
  }
}

void Unreached::OnBack() {
  if (is_away_) {
    is_away_ = false;
    loop_.Cancel(timer_);
    timer_ = 0;
    sentence_.clear();
  }
}

// The first counts.
void Unreached::EndAfter(int64_t ms, const std::string& peer, const std::string& why) {
  if (timer_ == 0) {
    sentence_ = own_ + " could not reach " + (peer.empty() ? "another rank" : peer) + ": " + why;
    timer_ = loop_.After(ms, [this] { end_(std::exchange(sentence_, {})); });
  }
}

}  // namespace sekisho::nxproxy::client
