// SPDX-License-Identifier: Apache-2.0
#include "topology/slots.h"

#include <algorithm>

namespace sekisho::topology {
namespace {

bool IsSamePair(const Request& a, const Request& b) { return a.from == b.from && a.to == b.to; }

}  // namespace

void PairQueue::Add(const Request& request) {
  waiting_[request.from].push_back(request);
  waiting_[request.to].push_back(request);
  ++count_;
  Touch(request.from);
  Touch(request.to);
}

void PairQueue::Touch(int host) {
  if (!is_touched_[host]) {
    is_touched_[host] = true;
    touched_.push_back(host);
  }
}

void PairQueue::Drop(int host) {
  for (const Request& request : waiting_[host]) {
    const int other = request.from == host ? request.to : request.from;
    std::erase_if(waiting_[other],
                  [&](const Request& r) { return r.from == host || r.to == host; });
  }
  count_ -= static_cast<int>(waiting_[host].size());
  waiting_[host].clear();
}

bool PairQueue::StartOne(int host, Slots& slots, std::vector<Request>& started) {
  if (!slots.IsFree(host, reach_)) {
    return false;
  }
  const Request* best = nullptr;
  size_t most = 0;
  for (const Request& request : waiting_[host]) {
    const int other = request.from == host ? request.to : request.from;
    if (waiting_[other].size() > most && slots.IsFree(other, reach_)) {
      best = &request;
      most = waiting_[other].size();
    }
  }
  if (best == nullptr) {
    return false;
  }
  const Request request = *best;
  for (const int end : {request.from, request.to}) {
    const auto found = std::find_if(waiting_[end].begin(), waiting_[end].end(),
                                    [&](const Request& r) { return IsSamePair(r, request); });
    *found = waiting_[end].back();
    waiting_[end].pop_back();
  }
  --count_;
  slots.Take(request, reach_);
  started.push_back(request);
  return true;
}

void PairQueue::Start(Slots& slots, std::vector<Request>& started) {
  std::vector<int> hosts;
  hosts.swap(touched_);
  std::sort(hosts.begin(), hosts.end(),
            [this](int a, int b) { return waiting_[a].size() > waiting_[b].size(); });
  for (const int host : hosts) {
    is_touched_[host] = false;
    while (StartOne(host, slots, started)) {
    }
  }
}

}  // namespace sekisho::topology
