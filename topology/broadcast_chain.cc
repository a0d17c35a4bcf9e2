// SPDX-License-Identifier: Apache-2.0
#include "topology/broadcast_chain.h"

#include <algorithm>

namespace sekisho::topology {
namespace {

constexpr int kRounds = 3;

}  // namespace

BroadcastChain::BroadcastChain(const std::vector<int>& order) : order_(order) {
  const int most = order.empty() ? -1 : *std::max_element(order.begin(), order.end());
  links_.resize(most + 1);
  for (size_t i = 0; i < order.size(); ++i) {
    links_[order[i]].position = static_cast<int>(i);
    links_[order[i]].asks = static_cast<int>(i) - 1;
  }
}

int BroadcastChain::NearestBefore(int position) const {
  while (--position >= 0 && links_[order_[position]].is_lost) {
  }
  return position;
}

int BroadcastChain::Before(int host) const {
  const Link& link = links_[host];
  return link.is_lost || link.asks < 0 ? -1 : order_[link.asks];
}

void BroadcastChain::Fail(int host) {
  Link& link = links_[host];
  link.asks = NearestBefore(link.asks);
  if (link.asks < 0 && ++link.rounds < kRounds) {
    link.asks = NearestBefore(link.position);
  }
}

void BroadcastChain::Lose(int host) { links_[host].is_lost = true; }

}  // namespace sekisho::topology
