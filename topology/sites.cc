// SPDX-License-Identifier: Apache-2.0
#include "topology/sites.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sekisho::topology {
namespace {

constexpr int kPings = 2;
constexpr int kSurePings = 14;      // where the answer may have been delayed
constexpr double kNearUs = 210;     // no nearer than this are two sites ...
constexpr double kNearRatio = 2.4;  // ... nor than so many times the shortest of all round trips
constexpr double kMaybeNear = 4;    // times that: perhaps still the same site
constexpr int kMergeSample = 8;
constexpr int kUnknownSample = 2;  // of sites that have met nowhere
constexpr double kGap = 1.3;       // sites are so many times farther apart than what is inside one

}  // namespace

SiteSearch::SiteSearch(int hosts, uint64_t seed)
    : random_(seed * 77 + 5), site_of_(hosts, -1), seekers_(hosts) {
  waiting_.resize(hosts);
  std::iota(waiting_.begin(), waiting_.end(), 0);
  std::shuffle(waiting_.begin(), waiting_.end(), random_);
  // How near is near?  Some random pairs, all at once, tell.
  const int pairs = std::min(hosts / 2, std::max(24, hosts / 32));
  for (int i = 0; i < pairs; ++i) {
    first_.emplace_back(waiting_[2 * i], waiting_[2 * i + 1]);
  }
}

void SiteSearch::Drop(int host) {
  std::erase(waiting_, host);
  for (auto& members : members_) {
    std::erase(members, host);
  }
}

bool SiteSearch::IsExcluded(int host, int site) const {
  return std::any_of(seekers_[host].clues.begin(), seekers_[host].clues.end(),
                     [site](const Clue& clue) { return clue.site == site; });
}

double SiteSearch::Near() const { return std::max(kNearRatio * shortest_us_, kNearUs); }

// The site that agrees best with what the host has seen; not plausible: none does.
int SiteSearch::BestGuess(int host, bool& is_plausible) const {
  int best = -1;
  double best_value = 1e18;
  for (int site = 0; site < static_cast<int>(members_.size()); ++site) {
    if (IsExcluded(host, site) || members_[site].empty()) {
      continue;
    }
    double value = 0;
    for (const Clue& clue : seekers_[host].clues) {
      const auto known = between_.find(std::minmax(site, clue.site));
      if (known != between_.end() && !clue.is_relayed) {
        // Any of them: one that was late says nothing, and a mean with it in it less than nothing.
        double nearest = 1e18;
        for (const double rtt : known->second) {
          const double tolerance = 0.3 * Near() + 0.01 * rtt;
          nearest = std::min(nearest, std::abs(rtt - clue.rtt_us) / tolerance);
        }
        value = std::max(value, nearest);
      } else {
        value = std::max(value, 0.9);
      }
    }
    if (value < best_value) {
      best_value = value;
      best = site;
    }
  }
  is_plausible = best_value < 1;
  return best;
}

std::optional<Request> SiteSearch::Choose(int host, const Slots& slots) {
  Seeker& seeker = seekers_[host];
  const auto free_member = [&](int site) {
    const std::vector<int>& members = members_[site];
    const size_t start = random_() % members.size();
    for (size_t i = 0; i < std::min<size_t>(members.size(), 12); ++i) {
      const int member = members[(start + i) % members.size()];
      if (slots.IsFree(member, Reach::kUnknown)) {
        return member;
      }
    }
    return -1;
  };
  int target = -1;
  int pings = kPings;
  if (seeker.ask_again >= 0) {
    target = slots.IsFree(seeker.ask_again, Reach::kUnknown) ? seeker.ask_again : -1;
    pings = kSurePings;
  } else if (seeker.clues.empty()) {
    // No idea: a member of any site, large sites more often.
    size_t all = 0;
    for (const auto& members : members_) {
      all += members.size();
    }
    size_t pick = all == 0 ? 0 : random_() % all;
    for (size_t site = 0; all > 0 && site < members_.size(); ++site) {
      if (pick < members_[site].size()) {
        target = free_member(static_cast<int>(site));
        break;
      }
      pick -= members_[site].size();
    }
  } else {
    bool is_plausible = false;
    const int site = BestGuess(host, is_plausible);
    if (is_plausible) {
      target = free_member(site);
    } else {
      // Far from every site known?  Ask all again: an answer may have been delayed.
      const auto unsure = std::find_if(seeker.clues.begin(), seeker.clues.end(),
                                       [](const Clue& clue) { return !clue.is_sure; });
      target = slots.IsFree(unsure->host, Reach::kUnknown) ? unsure->host : -1;
      pings = kSurePings;
    }
  }
  if (target < 0) {
    return std::nullopt;
  }
  return Request{host, target, 1, pings, pings};
}

void SiteSearch::Start(const Ledger& ledger, Slots& slots, std::vector<Request>& started) {
  for (const auto& [a, b] : first_) {
    const Request request{a, b, 1, kPings, kPings};
    slots.Take(request, Reach::kUnknown);
    started.push_back(request);
    ++under_way_;
  }
  if (!first_.empty()) {
    first_.clear();
    return;
  }
  if (members_.empty()) {
    if (under_way_ > 0) {
      return;
    }
    Regroup(ledger);
  }
  if (waiting_.empty()) {
    if (under_way_ == 0 && !is_done_) {
      Merge(ledger, slots, started);
    }
    return;
  }
  bool is_founded = true;
  while (is_founded && started.empty() && !waiting_.empty()) {
    is_founded = Probe(ledger, slots, started);
  }
  if (waiting_.empty() && started.empty() && under_way_ == 0) {
    Merge(ledger, slots, started);
  }
}

// One probe for every host without a site that is free; true if one of them is the first of a new
// site.
bool SiteSearch::Probe(const Ledger& ledger, Slots& slots, std::vector<Request>& started) {
  int failures = 0;  // free members are few: stop when none seems left
  bool is_founded = false;
  const std::vector<int> hosts = waiting_;
  for (const int host : hosts) {
    Seeker& seeker = seekers_[host];
    if (seeker.is_probing || site_of_[host] >= 0 || !slots.IsFree(host, Reach::kUnknown)) {
      continue;
    }
    if (!seeker.clues.empty() && seeker.ask_again < 0) {
      bool is_plausible = false;
      BestGuess(host, is_plausible);
      if (!is_plausible && std::all_of(seeker.clues.begin(), seeker.clues.end(),
                                       [](const Clue& clue) { return clue.is_sure; })) {
        members_.emplace_back();
        Settle(host, static_cast<int>(members_.size()) - 1, ledger);
        is_founded = true;
        continue;
      }
    }
    const std::optional<Request> request = Choose(host, slots);
    if (!request) {
      if (++failures > 40) {
        break;
      }
      continue;
    }
    seeker.is_probing = true;
    seeker.ask_again = -1;
    slots.Take(*request, Reach::kUnknown);
    started.push_back(*request);
    ++under_way_;
  }
  return is_founded;
}

void SiteSearch::Settle(int host, int site, const Ledger& ledger) {
  site_of_[host] = site;
  members_[site].push_back(host);
  std::erase(waiting_, host);
  for (const Clue& clue : seekers_[host].clues) {
    if (clue.site != site && !clue.is_relayed) {
      between_[std::minmax(site, clue.site)].push_back(clue.rtt_us);
    }
  }
  // Whom it has met before learns from that.
  for (const int partner : ledger.Partners(host)) {
    if (site_of_[partner] < 0) {
      Learn(partner, host, ledger, false);
    }
  }
}

// `host` knows its way to `other`, who has a site.
void SiteSearch::Learn(int host, int other, const Ledger& ledger, bool is_sure) {
  const double rtt = ledger.Rtt(host, other);
  const bool is_relayed = ledger.IsRelayed(host, other);
  if (rtt <= Near() && !is_relayed) {
    Settle(host, site_of_[other], ledger);
    return;
  }
  for (Clue& clue : seekers_[host].clues) {
    if (clue.host == other) {
      clue.rtt_us = rtt;
      clue.is_sure = clue.is_sure || is_sure;
      clue.is_relayed = is_relayed;
      return;
    }
  }
  // Nobody of one's own site is behind a relay: asking again would not change that.
  seekers_[host].clues.push_back({site_of_[other], rtt, other, is_sure || is_relayed, is_relayed});
}

// Begins anew from all that was measured: what counts as near has changed.
void SiteSearch::Regroup(const Ledger& ledger) {
  const int hosts = static_cast<int>(site_of_.size());
  for (int host = 0; host < hosts; ++host) {
    if (site_of_[host] >= 0) {
      waiting_.push_back(host);
    }
  }
  site_of_.assign(hosts, -1);
  members_.clear();
  between_.clear();
  for (Seeker& seeker : seekers_) {
    seeker.clues.clear();
  }
  // The first site: the two nearest hosts, or anybody.
  std::pair<int, int> nearest{-1, -1};
  double best = 1e18;
  for (const int host : waiting_) {
    for (const int partner : ledger.Partners(host)) {
      const double rtt = ledger.Rtt(host, partner);
      if (rtt < best && !ledger.IsRelayed(host, partner) &&
          std::find(waiting_.begin(), waiting_.end(), partner) != waiting_.end()) {
        best = rtt;
        nearest = {host, partner};
      }
    }
  }
  if (waiting_.empty()) {
    return;
  }
  members_.emplace_back();
  if (nearest.first < 0) {
    Settle(waiting_[0], 0, ledger);
  } else {
    Settle(nearest.first, 0, ledger);
    if (site_of_[nearest.second] < 0) {
      Settle(nearest.second, 0, ledger);
    }
  }
}

void SiteSearch::Report(const Request& request, const Answer& answer, const Ledger& ledger) {
  --under_way_;
  const int host = request.from;
  seekers_[host].is_probing = false;
  if (!answer.is_ok) {
    return;
  }
  const double before = shortest_us_;
  shortest_us_ = answer.is_relayed ? before : std::min(before, answer.min_us);
  if (members_.empty()) {
    return;
  }
  if (shortest_us_ < before * 0.6) {
    Regroup(ledger);
    return;
  }
  if (site_of_[host] >= 0 || site_of_[request.to] < 0) {
    return;
  }
  if (answer.min_us > Near() && answer.min_us < kMaybeNear * Near() && answer.pings <= kPings &&
      !answer.is_relayed) {
    seekers_[host].ask_again = request.to;
    return;
  }
  Learn(host, request.to, ledger, answer.pings >= kSurePings);
}

// Nine tenths of the known round trips inside a site are no longer.
double SiteSearch::Inside(int site, const Ledger& ledger) const {
  std::vector<double> rtts;
  for (const Observation& o : ledger.Among(members_[site])) {
    rtts.push_back(o.rtt_us);
  }
  std::sort(rtts.begin(), rtts.end());
  return rtts.empty() ? 0 : rtts[rtts.size() * 9 / 10];
}

// Sites that are near each other, or no farther apart than hosts inside one of them are, may be one
// that reaches far: some pairs of their hosts tell.
void SiteSearch::Merge(const Ledger& ledger, Slots& slots, std::vector<Request>& started) {
  std::vector<double> inside;
  for (size_t i = 0; i < members_.size(); ++i) {
    inside.push_back(Inside(static_cast<int>(i), ledger));
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (members_[i].empty() || members_[j].empty()) {
        continue;
      }
      const double one = std::max(Near(), kGap * std::max(inside[i], inside[j]));
      double nearest = 1e18;
      const std::vector<Observation> known = ledger.Between(members_[i], members_[j]);
      for (const Observation& o : known) {
        nearest = std::min(nearest, o.rtt_us);
      }
      if (nearest <= one) {
        inside[i] = std::max(inside[i], inside[j]);
        for (const int host : members_[j]) {
          site_of_[host] = static_cast<int>(i);
          members_[i].push_back(host);
        }
        members_[j].clear();
        continue;
      }
      const bool is_unknown =
          known.empty() && ledger.RelayedBetween(members_[i], members_[j]).empty();
      if (!is_merging_ && (is_unknown || nearest < kMaybeNear * one)) {
        const int wanted = is_unknown ? kUnknownSample : kMergeSample;
        for (int k = static_cast<int>(known.size()); k < wanted; ++k) {
          const Request request{members_[i][random_() % members_[i].size()],
                                members_[j][random_() % members_[j].size()], 1, kSurePings,
                                kSurePings};
          if (slots.IsFree(request.from, Reach::kUnknown) &&
              slots.IsFree(request.to, Reach::kUnknown)) {
            slots.Take(request, Reach::kUnknown);
            started.push_back(request);
            ++under_way_;
          }
        }
      }
    }
  }
  is_done_ = is_merging_ || started.empty();
  is_merging_ = true;
}

}  // namespace sekisho::topology
