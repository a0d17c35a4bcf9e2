// SPDX-License-Identifier: Apache-2.0
#include "topology/alpha_matrix.h"

#include <algorithm>
#include <numeric>

namespace sekisho::topology {
namespace {

constexpr int kPings = 5;
constexpr int kMostFailures = 3;
constexpr int kTries = 24;  // random others, before it waits until another is free

}  // namespace

AlphaMatrix::AlphaMatrix(int hosts, double alpha, uint64_t seed)
    : alpha_(alpha),
      random_(seed * 91 + 17),
      matrix_(hosts),
      unknown_(hosts),
      position_(hosts, std::vector<int>(hosts, -1)),
      failures_(hosts, 0),
      is_touched_(hosts, true),
      touched_(hosts),
      slots_(hosts) {
  std::iota(touched_.begin(), touched_.end(), 0);
  for (int host = 0; host < hosts; ++host) {
    matrix_.Set(host, host, 0);
    for (int other = 0; other < hosts; ++other) {
      if (other != host) {
        position_[host][other] = static_cast<int>(unknown_[host].size());
        unknown_[host].push_back(other);
      }
    }
  }
}

void AlphaMatrix::Settle(int host, int other, double rtt_us) {
  if (rtt_us >= 0) {
    matrix_.cells[static_cast<size_t>(host) * matrix_.size + other] = rtt_us;
  }
  const int at = position_[host][other];
  if (at >= 0) {
    const int last = unknown_[host].back();
    unknown_[host][at] = last;
    position_[host][last] = at;
    unknown_[host].pop_back();
    position_[host][other] = -1;
  }
}

// `host` has measured its way to `from` and hears all that it knows.
void AlphaMatrix::Learn(int host, int from) {
  const double near = matrix_.At(host, from);
  const std::vector<int> candidates = unknown_[host];
  for (const int other : candidates) {
    const double beyond = matrix_.At(from, other);
    if (other == from || beyond < 0 || position_[from][other] >= 0) {
      continue;
    }
    if (near > alpha_ * beyond) {
      Settle(host, other, near);
    } else if (near < beyond / alpha_) {
      Settle(host, other, beyond);
    }
  }
}

bool AlphaMatrix::StartOne(int host, std::vector<Request>& started) {
  if (!slots_.IsFree(host, Reach::kUnknown) || failures_[host] >= kMostFailures) {
    return false;
  }
  const size_t tries = std::min<size_t>(unknown_[host].size(), kTries);
  for (size_t i = 0; i < tries; ++i) {
    const int other = unknown_[host][random_() % unknown_[host].size()];
    if (slots_.IsFree(other, Reach::kUnknown)) {
      const Request request{host, other, 1, kPings, kPings};
      slots_.Take(request, Reach::kUnknown);
      started.push_back(request);
      return true;
    }
  }
  return false;
}

std::vector<Request> AlphaMatrix::Next() {
  std::vector<Request> started;
  std::vector<int> hosts;
  hosts.swap(touched_);
  for (const int host : hosts) {
    is_touched_[host] = false;
    const bool is_idle = slots_.IsFree(host, Reach::kUnknown);
    if (!StartOne(host, started) && is_idle && !unknown_[host].empty() &&
        failures_[host] < kMostFailures) {
      is_touched_[host] = true;  // once more at the next event
      touched_.push_back(host);
    }
  }
  return started;
}

void AlphaMatrix::Report(const Request& request, const Answer& answer) {
  slots_.Release(request, Reach::kUnknown);
  for (const auto& [host, other] :
       {std::pair(request.from, request.to), {request.to, request.from}}) {
    Settle(host, other, answer.is_ok ? answer.min_us : -1);
    failures_[host] += answer.is_ok ? -std::min(failures_[host], 1) : 1;
  }
  measured_ += answer.is_ok ? 1 : 0;
  if (answer.is_ok) {
    Learn(request.from, request.to);
    Learn(request.to, request.from);
  }
  for (const int host : {request.from, request.to}) {
    if (!is_touched_[host]) {
      is_touched_[host] = true;
      touched_.push_back(host);
    }
  }
}

}  // namespace sekisho::topology
