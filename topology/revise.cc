// SPDX-License-Identifier: Apache-2.0
#include "topology/revise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "topology/median.h"

namespace sekisho::topology {
namespace {

constexpr int kFewHosts = 6;          // so few are inferred anew as soon
constexpr double kMostUnknown = 0.3;  // of all hosts; if more have no place, the same
constexpr int kCheckPings = 8;
constexpr int kFarPartners = 14;
constexpr int kNearPartners = 22;
constexpr int kPlacePings = 10;
constexpr double kDoubtful = 4;  // times the usual distance from the tree
constexpr int kDoubtRounds = 2;
constexpr int kDoubtPings = 20;
constexpr int kMorePartners = 5;
constexpr double kMoveGain = 16;  // squared standard deviations, as topology/place.cc counts them
constexpr double kLeastNoise_us = 1;
constexpr double kPairShare = 0.003;  // of a round trip
constexpr double kMostNoise_us = 6;   // with the next: of a tree that is no longer true
constexpr double kMostNoiseShare = 0.03;
constexpr double kLinkPenalty = 8;  // as where a site's tree is grown: topology/lan.cc

std::vector<int> SwitchesOf(const Tree& tree) {
  std::vector<int> switch_of(tree.host_count, -1);
  for (const Link& link : tree.links) {
    for (const auto& [end, other] : {std::pair(link.u, link.v), {link.v, link.u}}) {
      if (tree.IsHost(end)) {
        switch_of[end] = other;
      }
    }
  }
  return switch_of;
}

}  // namespace

ReviseMethod::ReviseMethod(Known known, uint64_t seed)
    : known_(std::move(known)),
      seed_(seed),
      random_(seed * 77 + 5),
      ledger_(known_.tree.host_count),
      slots_(known_.tree.host_count),
      queue_(known_.tree.host_count, Reach::kUnknown),
      old_leaf_us_(known_.tree.host_count, 0),
      is_lost_(known_.tree.host_count, false) {
  Index();
  old_switch_of_ = switch_of_;
  for (const Link& link : known_.tree.links) {
    if (known_.tree.IsHost(std::min(link.u, link.v))) {
      old_leaf_us_[std::min(link.u, link.v)] = link.rtt_us;
    }
  }
  int here = 0;
  int in_place = 0;
  for (int host = 0; host < known_.tree.host_count; ++host) {
    if (known_.is_here[host]) {
      ++here;
      in_place += IsPlaced(host) ? 1 : 0;
      if (!IsPlaced(host)) {
        to_place_.push_back(host);
      }
    }
  }
  const bool is_piece = static_cast<int>(std::count(switch_of_.begin(), switch_of_.end(), -1)) +
                            static_cast<int>(rooted_.order.size()) ==
                        known_.tree.vertex_count;
  if (here < 2) {
    stage_ = Stage::kDone;
    return;
  }
  if (in_place < kFewHosts || here - in_place > kMostUnknown * here || !is_piece) {
    InferAnew();
    return;
  }
  Check();
}

void ReviseMethod::Index() {
  switch_of_ = SwitchesOf(known_.tree);
  const std::vector<Link>& links = known_.tree.links;
  rooted_ = HangUp(known_.tree, links.empty() ? 0 : std::max(links[0].u, links[0].v));
}

void ReviseMethod::Ask(int from, int to, int pings) {
  if (from != to && !is_lost_[from] && !is_lost_[to]) {
    queue_.Add({from, to, 1, pings, pings});
  }
}

void ReviseMethod::CheckPair(int a, int b) {
  if (a != b && checked_.insert(std::minmax(a, b)).second) {
    Ask(a, b, kCheckPings);
  }
}

// Everybody who is here measures two at his switch and two that are anywhere.
void ReviseMethod::Check() {
  for (int host = 0; host < known_.tree.host_count; ++host) {
    if (known_.is_here[host] && IsPlaced(host)) {
      here_.push_back(host);
      beside_[switch_of_[host]].push_back(host);
    }
  }
  std::shuffle(here_.begin(), here_.end(), random_);
  for (auto& [at, hosts] : beside_) {
    std::shuffle(hosts.begin(), hosts.end(), random_);
    for (size_t i = 0; i < hosts.size(); ++i) {
      CheckPair(hosts[i], hosts[(i + 1) % hosts.size()]);
    }
  }
  for (size_t i = 0; i < here_.size(); ++i) {
    CheckPair(here_[i], here_[(i + 1) % here_.size()]);
  }
  for (const int host : to_place_) {
    AskFar(host);
  }
}

// Of two that contradict the tree one may be right: both measure some more.
void ReviseMethod::CheckMore(const std::set<int>& hosts) {
  for (const int host : hosts) {
    const std::vector<int>& beside = beside_[switch_of_[host]];
    for (int i = 0; i < kMorePartners; ++i) {
      CheckPair(host, beside[random_() % beside.size()]);
      CheckPair(host, here_[random_() % here_.size()]);
    }
  }
}

void ReviseMethod::AskFar(int host) {
  std::vector<int> others;
  for (int other = 0; other < known_.tree.host_count; ++other) {
    if (other != host && known_.is_here[other] && IsPlaced(other)) {
      others.push_back(other);
    }
  }
  std::shuffle(others.begin(), others.end(), random_);
  others.resize(std::min<size_t>(others.size(), kFarPartners));
  for (const int other : others) {
    Ask(host, other, kPlacePings);
  }
}

std::vector<std::pair<int, int>> ReviseMethod::Doubtful() {
  std::vector<Excess> excesses;
  for (const auto& [a, b] : checked_) {
    if (ledger_.Has(a, b)) {
      excesses.push_back({a, b, ledger_.Rtt(a, b) - rooted_.Rtt(a, b)});
    }
  }
  shifts_ = FitShifts(known_.tree.host_count, excesses);
  std::vector<std::pair<double, double>> by_length;  // expected, and how far off it was
  std::vector<double> shares;
  for (const Excess& pair : excesses) {
    const double expected = rooted_.Rtt(pair.a, pair.b);
    const double off = std::abs(pair.us - shifts_.Of(pair.a, pair.b));
    by_length.emplace_back(expected, off);
    shares.push_back(off / std::max(expected, 1.0));
  }
  std::vector<std::pair<std::pair<int, int>, double>> found;
  for (size_t i = 0; i < excesses.size(); ++i) {
    found.emplace_back(std::pair(excesses[i].a, excesses[i].b),
                       by_length[i].second - kDoubtful * kPairShare * by_length[i].first);
  }
  // Of the shorter half: across sites the noise is that of the way between them.
  std::sort(by_length.begin(), by_length.end());
  std::vector<double> short_off;
  for (size_t i = 0; i < (by_length.size() + 1) / 2; ++i) {
    short_off.push_back(by_length[i].second);
  }
  // The shifts have taken their part of it.
  const double pairs = static_cast<double>(excesses.size());
  const double freedom = std::max(pairs - static_cast<double>(here_.size()), pairs / 4);
  const double usual =
      1.4826 * Median(std::move(short_off)) * std::sqrt(pairs / std::max(freedom, 1.0));
  revision_.noise_us = usual;
  noise_us_ = std::max(usual, kLeastNoise_us);
  if (usual > kMostNoise_us && Median(shares) > kMostNoiseShare) {
    InferAnew();
    return {};
  }
  std::vector<std::pair<int, int>> doubtful;
  for (const auto& [pair, off] : found) {
    if (off > kDoubtful * noise_us_) {
      doubtful.push_back(pair);
    }
  }
  return doubtful;
}

// Hosts that fit clearly better elsewhere.
std::set<int> ReviseMethod::Misfits() const {
  std::set<int> misfits;
  for (const int host : here_) {
    const std::vector<Sight> sights = SightsOf(host);
    if (sights.size() < 3) {
      continue;
    }
    const Place place = BestPlace(known_.tree, rooted_, sights,
                                  std::numeric_limits<double>::infinity(), switch_of_[host]);
    if (place.vertex != switch_of_[host] && place.cost + kMoveGain < place.current_cost) {
      misfits.insert(host);
    }
  }
  return misfits;
}

// Hosts that are farther from all that they measured than others are: busy, or elsewhere.
std::set<int> ReviseMethod::Strays() const {
  std::set<int> strays;
  for (const int host : here_) {
    if (std::abs(shifts_.host_us[host] - shifts_.usual_us) >
        kDoubtful * std::max(noise_us_, shifts_.spread_us)) {
      strays.insert(host);
    }
  }
  return strays;
}

// Who is to be placed again.
void ReviseMethod::Judge(const std::vector<std::pair<int, int>>& doubtful) {
  std::set<int> moved = Misfits();
  std::vector<Contradiction> pairs;
  const std::set<std::pair<int, int>> is_wrong(doubtful.begin(), doubtful.end());
  for (const auto& [a, b] : checked_) {
    if (ledger_.Has(a, b)) {
      pairs.push_back({a, b, switch_of_[a] == switch_of_[b], is_wrong.contains({a, b})});
    }
  }
  const std::vector<int> blamed = Blame(known_.tree.host_count, std::move(pairs));
  moved.insert(blamed.begin(), blamed.end());
  // Many at once, or pairs of which neither is wrong: the network between them is not what it was.
  if (moved.size() > 2 + here_.size() / 20 ||
      (moved.empty() && doubtful.size() > 2 + checked_.size() / 20)) {
    return InferAnew();
  }
  const std::set<int> strays = Strays();
  moved.insert(strays.begin(), strays.end());
  std::erase_if(known_.tree.links,
                [&](const Link& link) { return moved.contains(std::min(link.u, link.v)); });
  Index();
  for (const int host : moved) {
    to_place_.push_back(host);
    AskFar(host);
  }
}

std::vector<Sight> ReviseMethod::SightsOf(int host) const {
  std::vector<Sight> sights;
  for (const int partner : ledger_.Partners(host)) {
    if (IsPlaced(partner)) {
      const double rtt =
          std::max(ledger_.Rtt(host, partner) - shifts_.host_us[partner] - shifts_.usual_us, 0.0);
      sights.push_back({partner, rtt, std::hypot(noise_us_, kPairShare * rtt)});
    }
  }
  return sights;
}

// Places those whose near partners have answered; asks for the near partners of the next.
bool ReviseMethod::PlaceNext() {
  while (!to_place_.empty()) {
    const int host = to_place_.back();
    const std::vector<Sight> sights = SightsOf(host);
    if (is_lost_[host] || sights.size() < 3) {
      to_place_.pop_back();  // what was heard of it says too little
      continue;
    }
    const int before = old_switch_of_[host];
    Place place = BestPlace(known_.tree, rooted_, sights, kLinkPenalty, before);
    if (stage_ == Stage::kNear) {
      if (before >= 0 && place.vertex != before && place.cost + kMoveGain > place.current_cost) {
        place = {.vertex = before, .leaf_us = old_leaf_us_[host]};  // no reason to move
      }
      if (before < 0 || place.vertex != before) {
        (before < 0 ? revision_.placed : revision_.moved).push_back(host);
      }
      Hang(known_.tree, host, place);
      Index();
      to_place_.pop_back();
      stage_ = Stage::kFar;
      continue;
    }
    // Nearest first by where it seems to be.
    Tree trial = known_.tree;
    Hang(trial, host, place);
    const Rooted seen = HangUp(trial, host);
    std::vector<std::pair<double, int>> near;
    for (int other = 0; other < trial.host_count; ++other) {
      if (other != host && known_.is_here[other] && !is_lost_[other] && IsPlaced(other)) {
        near.emplace_back(seen.depth_us[other], other);
      }
    }
    std::sort(near.begin(), near.end());
    near.resize(std::min<size_t>(near.size(), kNearPartners));
    for (const auto& [far, other] : near) {
      if (!ledger_.Has(host, other)) {
        Ask(host, other, kPlacePings);
      }
    }
    stage_ = Stage::kNear;
    if (!queue_.IsEmpty()) {
      return true;
    }
  }
  return false;
}

void ReviseMethod::Step() {
  switch (stage_) {
    case Stage::kCheck:
    case Stage::kDoubt: {
      const auto doubtful = Doubtful();
      if (anew_ != nullptr) {
        return;
      }
      std::set<int> hosts = Misfits();
      hosts.merge(Strays());
      for (const auto& [a, b] : doubtful) {
        hosts.insert({a, b});
      }
      if (!hosts.empty() && doubt_rounds_++ < kDoubtRounds) {
        for (const auto& [a, b] : doubtful) {
          Ask(a, b, kDoubtPings);
        }
        if (doubt_rounds_ == kDoubtRounds) {
          CheckMore(hosts);
        }
        stage_ = Stage::kDoubt;
        return;
      }
      stage_ = Stage::kFar;
      return Judge(doubtful);
    }
    case Stage::kFar:
    case Stage::kNear:
      if (!PlaceNext()) {
        stage_ = Stage::kDone;
      }
      return;
    case Stage::kDone:
      return;
  }
}

void ReviseMethod::InferAnew() {
  number_of_.assign(known_.tree.host_count, -1);
  for (int host = 0; host < known_.tree.host_count; ++host) {
    if (known_.is_here[host] && !is_lost_[host]) {
      number_of_[host] = static_cast<int>(host_of_.size());
      host_of_.push_back(host);
    }
  }
  revision_.is_anew = true;
  stage_ = Stage::kDone;
  anew_ = std::make_unique<FastMethod>(static_cast<int>(host_of_.size()),
                                       FastOptions{.site_hints = {}, .seed = seed_});
}

std::vector<Request> ReviseMethod::Next() {
  std::vector<Request> started;
  while (anew_ == nullptr) {
    queue_.Start(slots_, started);
    under_way_ += static_cast<int>(started.size());
    if (under_way_ > 0 || !queue_.IsEmpty() || stage_ == Stage::kDone) {
      return started;
    }
    Step();
  }
  for (Request request : anew_->Next()) {
    request.from = host_of_[request.from];
    request.to = host_of_[request.to];
    started.push_back(request);
  }
  return started;
}

void ReviseMethod::Report(const Request& request, const Answer& answer) {
  if (anew_ != nullptr) {
    Request inner = request;
    inner.from = number_of_[request.from];
    inner.to = number_of_[request.to];
    return anew_->Report(inner, answer);
  }
  --under_way_;
  slots_.Release(request, Reach::kUnknown);
  ledger_.Add(request, is_lost_[request.from] || is_lost_[request.to] ? Answer{} : answer);
  for (const int host : {request.from, request.to}) {
    queue_.Touch(host);
    if (!answer.is_ok && !is_lost_[host] &&
        ledger_.Failed(host) >= 3 + 3 * ledger_.Answered(host)) {
      Lose(host);
    }
  }
}

void ReviseMethod::Lose(int host) {
  is_lost_[host] = true;
  queue_.Drop(host);
  if (anew_ != nullptr && number_of_[host] >= 0) {
    anew_->Lose(number_of_[host]);
  } else if (anew_ == nullptr) {
    ledger_.Forget(host);
  }
}

Outcome ReviseMethod::Finish() {
  Outcome outcome;
  const int n = known_.tree.host_count;
  const Outcome found = anew_ == nullptr ? Outcome{} : anew_->Finish();
  if (found.tree.links.empty()) {  // or nobody answered: what was known stays
    revision_.is_anew = false;
    outcome.tree = Simplified(known_.tree);
    for (int host = 0; host < n; ++host) {
      if (known_.is_here[host] && (is_lost_[host] || !IsPlaced(host))) {
        outcome.excluded.push_back(
            {host, IsPlaced(host) ? "stopped answering" : "too few answers"});
      }
    }
    return outcome;
  }
  const int count = static_cast<int>(host_of_.size());
  outcome.tree = {
      .host_count = n, .vertex_count = found.tree.vertex_count - count + n, .links = {}};
  for (Link link : found.tree.links) {
    for (int* end : {&link.u, &link.v}) {
      *end = *end < count ? host_of_[*end] : *end - count + n;
    }
    outcome.tree.links.push_back(link);
  }
  for (const Excluded& one : found.excluded) {
    outcome.excluded.push_back({host_of_[one.host], one.why});
  }
  return outcome;
}

}  // namespace sekisho::topology
