// SPDX-License-Identifier: Apache-2.0
#include "topology/bandwidth_switch.h"

#include <algorithm>

namespace sekisho::topology {
namespace {

constexpr size_t kMostFlows = 16;
constexpr int kMostRounds = 12;
constexpr double kSame = 0.93;   // two rates that differ by less are one
constexpr double kSure = 0.8;    // others that carry as much more were surely not in the way
constexpr double kPlenty = 1.5;  // so much more than one the others should carry together

}  // namespace

void Switch::LookFarther() { climb_ += own_ < branches_.size() && Wanted() <= wanted_ ? 1 : 0; }

void Switch::Resume(Branch beyond) {
  wanted_ = Wanted();
  branches_.resize(own_);
  branches_.push_back(std::move(beyond));
  for (Branch& branch : branches_) {
    branch.met = 0;
  }
  rounds_ = 0;
}

bool Switch::IsDone() const {
  return std::all_of(branches().begin(), branches().end(),
                     [](const Branch& branch) { return branch.is_known; });
}

bool Switch::IsAtLeast(const Branch& branch) const {
  if (branch.is_known) {
    return branch.best >= kSame * branch.supply;
  }
  return !branch.with.empty() &&
         std::all_of(branch.with.begin(), branch.with.end(),
                     [this](int other) { return IsBeyond(other) || branches_[other].is_known; });
}

double Switch::Wanted() const {
  double wanted = 0;
  for (const Branch& branch : branches()) {
    wanted = std::max(wanted, branch.is_known ? 0 : kPlenty * branch.best);
  }
  return wanted;
}

double Switch::Best(const std::vector<int>& branches) const {
  double sum = 0;
  for (const int branch : branches) {
    sum += branches_[branch].best;
  }
  return sum;
}

double Switch::Sure(const std::vector<int>& branches) const {
  double sum = 0;
  for (const int branch : branches) {
    sum += IsBeyond(branch) ? branches_[branch].sure : branches_[branch].best;
  }
  return sum;
}

// Who was measured with others that have carried more since then was itself in the way.
void Switch::Infer() {
  for (size_t i = 0; i < own_; ++i) {
    Branch& branch = branches_[i];
    const bool is_inside = std::none_of(branch.with.begin(), branch.with.end(),
                                        [this](int other) { return IsBeyond(other); });
    branch.is_known = branch.is_known || (is_inside && Best(branch.with) * kSure > branch.best);
  }
}

// Those that together have carried more than `one`, of them that are free; all if it takes all.
std::vector<int> Switch::Partners(int one, const std::vector<bool>& is_taken) const {
  std::vector<int> order;
  for (size_t i = 0; i < branches_.size(); ++i) {
    if (static_cast<int>(i) != one && !is_taken[i]) {
      order.push_back(static_cast<int>(i));
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [this](int a, int b) { return Sure({a}) > Sure({b}); });
  size_t count = 0;
  double sum = 0;
  while (count < std::min(order.size(), kMostFlows) &&
         (count == 0 || sum < kPlenty * branches_[one].best)) {
    sum += Sure({order[count++]});
  }
  order.resize(count);
  return order;
}

Transfer Switch::Between(int one, std::vector<int> others) const {
  Transfer transfer{.vertex = vertex_,
                    .one = one,
                    .others = std::move(others),
                    .links = {branches_[one].link},
                    .flows = {}};
  std::vector<int> targets;
  for (size_t round = 0; round < kMostFlows; ++round) {
    for (const int other : transfer.others) {
      if (targets.size() < kMostFlows && round < branches_[other].hosts.size()) {
        targets.push_back(branches_[other].hosts[round]);
      }
    }
  }
  for (const int other : transfer.others) {
    if (branches_[other].link != branches_[one].link) {
      transfer.links.push_back(branches_[other].link);
    }
  }
  // Each to two, where there are two: who meets one that takes little has another that takes more.
  const std::vector<int>& senders = branches_[one].hosts;
  const size_t fan = std::min({size_t{2}, senders.size(), targets.size()});
  for (size_t k = 0; k < std::max(senders.size(), targets.size()); ++k) {
    for (size_t turn = 0; turn < fan; ++turn) {
      transfer.flows.emplace_back(senders[k % senders.size()],
                                  targets[(k + turn) % targets.size()]);
    }
  }
  return transfer;
}

// Branches that are not known yet, each with others that carry more; the slowest choose first.
std::vector<Transfer> Switch::Match() {
  std::vector<Transfer> transfers;
  if (rounds_++ >= kMostRounds) {
    return transfers;
  }
  Infer();
  std::vector<int> doubtful;
  for (size_t i = 0; i < own_; ++i) {
    if (!branches_[i].is_known) {
      doubtful.push_back(static_cast<int>(i));
    }
  }
  std::stable_sort(doubtful.begin(), doubtful.end(),
                   [this](int a, int b) { return branches_[a].best < branches_[b].best; });
  std::vector<bool> is_taken(branches_.size(), false);
  for (const int one : doubtful) {
    if (is_taken[one]) {
      continue;
    }
    const std::vector<int> others = Partners(one, is_taken);
    Branch& branch = branches_[one];
    const double sum = Best(others);
    // At first nobody has carried anything; then only who can carry more than before says more.
    if (others.empty() || (branch.best > 0 && sum * kSame <= std::max(branch.best, branch.met))) {
      continue;
    }
    branch.met = sum;
    is_taken[one] = true;
    for (const int other : others) {
      is_taken[other] = true;
    }
    transfers.push_back(Between(one, others));
  }
  return transfers;
}

void Switch::Report(const Transfer& transfer, double mbps) {
  const auto judge = [mbps](Branch& branch, double others, std::vector<int> with) {
    // Those who have carried more before were not in the way: we were.
    branch.is_known = branch.is_known || others * kSure > mbps || mbps >= kSame * branch.supply;
    if (mbps > branch.best) {
      branch.best = mbps;
      branch.with = std::move(with);
    }
    if (branch.best >= kSame * branch.supply) {
      branch.best = std::max(branch.best, branch.supply);  // that of each of its own says more
    }
  };
  const double before = branches_[transfer.one].best;
  judge(branches_[transfer.one], Sure(transfer.others), transfer.others);
  if (transfer.others.size() == 1 && !IsBeyond(transfer.others[0])) {
    judge(branches_[transfer.others[0]], before, {transfer.one});
  }
}

}  // namespace sekisho::topology
