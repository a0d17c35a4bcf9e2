// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/dispatcher.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace sekisho::topology {

Dispatcher::Dispatcher(int hosts, int most_at_once)
    : most_at_once_(most_at_once > 0 ? static_cast<size_t>(most_at_once)
                                     : std::numeric_limits<size_t>::max()),
      most_under_way_(most_at_once > 0 ? kFarOnes * static_cast<size_t>(most_at_once)
                                       : std::numeric_limits<size_t>::max()),
      is_dead_(hosts, false),
      barred_(hosts, 0) {}

Request Dispatcher::Sent(const Job& job) {
  Request request = job.asked;
  if (job.is_swapped) {
    std::swap(request.from, request.to);
  }
  return request;
}

bool Dispatcher::IsDoomed(const Job& job) const {
  return is_dead_[job.asked.from] || is_dead_[job.asked.to];
}

void Dispatcher::Add(const Request& request) {
  waiting_.push_back({.asked = request, .is_swapped = barred_[request.to] > barred_[request.from]});
}

std::vector<Dispatcher::Order> Dispatcher::Start(double now_s) {
  std::vector<Order> orders;
  size_t crowd = static_cast<size_t>(std::count_if(under_way_.begin(), under_way_.end(), [now_s](const auto& entry) {
    return now_s < entry.second.begin_s + kCrowdS;
  }));
  while (!waiting_.empty() && crowd < most_at_once_ && under_way_.size() < most_under_way_) {
    Job job = waiting_.front();
    waiting_.pop_front();
    if (IsDoomed(job)) {
      End(job, {});
      continue;
    }
    job.begin_s = now_s;
    ++crowd;
    orders.push_back({next_id_, Sent(job)});
    under_way_.emplace(next_id_++, job);
  }
  return orders;
}

double Dispatcher::NextStart() const {
  if (waiting_.empty() || under_way_.size() < most_at_once_ || under_way_.size() >= most_under_way_) {
    return std::numeric_limits<double>::infinity();
  }
  const auto nth = std::next(under_way_.rbegin(), static_cast<long>(most_at_once_) - 1);  // ids are in the order of time
  return nth->second.begin_s + kCrowdS;
}

const Request* Dispatcher::Find(long id) const {
  const auto found = under_way_.find(id);
  return found == under_way_.end() ? nullptr : &found->second.asked;
}

void Dispatcher::Report(long id, const Answer& answer) {
  const auto found = under_way_.find(id);
  if (found == under_way_.end()) {
    return;
  }
  Job job = found->second;
  under_way_.erase(found);
  if (!answer.is_ok && !job.is_second && !IsDoomed(job)) {
    job.is_swapped = !job.is_swapped;
    job.is_second = true;
    waiting_.push_front(job);
    return;
  }
  if (answer.is_ok && job.is_second) {
    // The one that connects now is the one that could not be connected to.
    ++barred_[Sent(job).from];
  }
  End(job, answer);
}

void Dispatcher::End(const Job& job, const Answer& answer) {
  done_.emplace_back(job.asked, answer);
}

void Dispatcher::Kill(int host) {
  is_dead_[host] = true;
  std::vector<long> lost;
  for (const auto& [id, job] : under_way_) {
    if (IsDoomed(job)) {
      lost.push_back(id);
    }
  }
  for (const long id : lost) {
    Report(id, {});
  }
}

std::vector<std::pair<Request, Answer>> Dispatcher::TakeDone() { return std::exchange(done_, {}); }

}  // namespace sekisho::topology
