// SPDX-License-Identifier: Apache-2.0
#include "topology/upkeep.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sekisho::topology {
namespace {

constexpr double kMostSettling = 10;  // times: newcomers that come all the time are not waited for

std::string Count(size_t count, const char* what) {
  return fmt::format("{} host{} {}", count, count == 1 ? "" : "s", what);
}

}  // namespace

std::vector<std::string> Upkeep::HostNames() const {
  return {tree_.names.begin(), tree_.names.begin() + tree_.tree.host_count};
}

void Upkeep::Restore(NamedTree tree, double now_s) {
  tree_ = std::move(tree);
  for (const std::string& host : HostNames()) {
    placed_.insert(host);
    away_since_s_[host] = now_s;
  }
  generation_ = 1;
  last_end_s_ = now_s;
}

void Upkeep::Join(const std::string& host, double now_s) {
  here_.insert(host);
  away_since_s_.erase(host);
  if (!HasPlace(host)) {
    first_newcomer_s_ = std::min(first_newcomer_s_, now_s);
    last_newcomer_s_ = now_s;
    unplaceable_.erase(host);
  }
}

void Upkeep::Leave(const std::string& host, double now_s) {
  here_.erase(host);
  if (HasPlace(host)) {
    away_since_s_[host] = now_s;
  }
}

double Upkeep::DueAt_s() const {
  if (is_under_way_ || here_.size() < 2) {
    return std::numeric_limits<double>::infinity();
  }
  const bool has_newcomer = std::any_of(here_.begin(), here_.end(), [this](const auto& host) {
    return !HasPlace(host) && !unplaceable_.contains(host);
  });
  return has_newcomer
             ? std::min(last_newcomer_s_, first_newcomer_s_ + kMostSettling * options_.settle_s) +
                   options_.settle_s
             : last_end_s_ + options_.period_s;
}

Upkeep::Session Upkeep::Begin(const std::set<std::string>& ready, double now_s) {
  is_under_way_ = true;
  first_newcomer_s_ = std::numeric_limits<double>::infinity();
  std::vector<bool> is_forgotten;
  for (const std::string& host : HostNames()) {
    const auto away = away_since_s_.find(host);
    is_forgotten.push_back(away != away_since_s_.end() &&
                           away->second + options_.forget_s <= now_s);
  }
  Session session{.hosts = HostNames(), .method = nullptr};
  for (const std::string& host : ready) {
    if (!HasPlace(host)) {
      session.hosts.push_back(host);
    }
  }
  const int old_hosts = tree_.tree.host_count;
  const int more = static_cast<int>(session.hosts.size()) - old_hosts;
  Known known{.tree = Without(tree_.tree, is_forgotten), .is_here = {}};
  known.tree.host_count += more;
  known.tree.vertex_count += more;
  for (Link& link : known.tree.links) {  // newcomers are numbered before the switches
    link.u += link.u >= old_hosts ? more : 0;
    link.v += link.v >= old_hosts ? more : 0;
  }
  for (const std::string& host : session.hosts) {
    known.is_here.push_back(ready.contains(host));
  }
  session.method = std::make_unique<ReviseMethod>(std::move(known), options_.seed + ++sessions_);
  return session;
}

// Only hosts that have a place.
void Upkeep::SetTree(const Tree& tree, const std::vector<std::string>& hosts) {
  std::vector<int> number(tree.vertex_count, -1);
  NamedTree next;
  for (const Link& link : tree.links) {
    for (const int end : {link.u, link.v}) {
      if (tree.IsHost(end) && number[end] < 0) {
        number[end] = next.tree.host_count++;
        next.names.push_back(hosts[end]);
      }
    }
  }
  next.tree.vertex_count = next.tree.host_count;
  for (Link link : tree.links) {
    for (int* end : {&link.u, &link.v}) {
      if (number[*end] < 0) {
        number[*end] = next.tree.vertex_count++;
      }
      *end = number[*end];
    }
    next.tree.links.push_back(link);
  }
  next.names = VertexNames(next.tree, next.names);
  tree_ = std::move(next);
  placed_.clear();
  for (const std::string& host : HostNames()) {
    placed_.insert(host);
  }
}

std::string Upkeep::End(Session session, double now_s) {
  is_under_way_ = false;
  last_end_s_ = now_s;
  Outcome outcome = session.method->Finish();
  const Revision& revision = session.method->revision();
  unplaceable_.clear();
  for (const Excluded& one : outcome.excluded) {
    unplaceable_.insert(session.hosts[one.host]);
  }
  const std::set<std::string> before = placed_;
  std::string what;
  const auto add = [&what](const std::string& text) { what += (what.empty() ? "" : ", ") + text; };
  if (revision.is_anew) {
    add("inferred anew");
  }
  if (!revision.placed.empty()) {
    add(Count(revision.placed.size(), "placed"));
  }
  if (!revision.moved.empty()) {
    add(Count(revision.moved.size(), "moved"));
  }
  SetTree(outcome.tree, session.hosts);
  const auto gone = std::count_if(before.begin(), before.end(),
                                  [this](const auto& host) { return !HasPlace(host); });
  if (gone > 0) {
    add(Count(static_cast<size_t>(gone), "gone"));
  }
  generation_ += what.empty() ? 0 : 1;
  return what;
}

}  // namespace sekisho::topology
