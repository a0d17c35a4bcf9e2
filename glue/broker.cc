// SPDX-License-Identifier: Apache-2.0
#include "glue/broker.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "glue/platform.h"

namespace sekisho::glue {
namespace {

// The terms' weights: a free place now beats everything else; what is left free, a faster clock and a near
// site decide among those that have it, a shorter queue among those that have none.
constexpr double kFitsNow = 1000;
constexpr double kLeftFree = 100;
constexpr double kClock = 100;
constexpr double kNear = 50;
constexpr double kLongestWait = 500;

std::string Said(std::optional<int64_t> number) { return number ? std::to_string(*number) : "not said"; }

std::optional<int64_t> ToNumber(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

bool Compare(std::optional<int64_t> number, const std::string& op, const std::string& text) {
  const auto wanted = ToNumber(text);
  if (!number || !wanted) {
    return false;
  }
  return op == "=" ? *number == *wanted : op == "!=" ? *number != *wanted : op == "<" ? *number < *wanted
         : op == "<=" ? *number <= *wanted : op == ">" ? *number > *wanted : *number >= *wanted;
}

// A word that is one of `values`.
bool Compare(const std::string& word, const std::string& op, const std::vector<std::string>& values) {
  const bool has = std::find(values.begin(), values.end(), word) != values.end();
  return op == "=" ? has : !has;
}

bool Meets(const Environment& environment, const Demand::Condition& condition) {
  if (condition.attribute == "memory") return Compare(environment.memory_mb, condition.op, condition.values[0]);
  if (condition.attribute == "clock") return Compare(environment.clock_mhz, condition.op, condition.values[0]);
  if (condition.attribute == "resource") return Compare(environment.name, condition.op, condition.values);
  if (condition.attribute == "os") return Compare(environment.os, condition.op, condition.values);
  if (condition.attribute == "arch") {
    std::vector<std::string> platforms;
    for (const std::string& value : condition.values) {
      platforms.push_back(Platform(value));
    }
    return Compare(environment.platform, condition.op, platforms);
  }
  if (condition.attribute == "tags") {
    const auto has = [&](const std::string& tag) {
      return std::find(environment.tags.begin(), environment.tags.end(), tag) != environment.tags.end();
    };
    return condition.op == "=" ? std::all_of(condition.values.begin(), condition.values.end(), has)
                               : std::none_of(condition.values.begin(), condition.values.end(), has);
  }
  return true;  // `node`: only the site knows
}

std::string Published(const Environment& environment, const std::string& attribute) {
  if (attribute == "memory") return Said(environment.memory_mb);
  if (attribute == "clock") return Said(environment.clock_mhz);
  if (attribute == "resource") return environment.name;
  if (attribute == "os") return environment.os;
  if (attribute == "arch") return environment.platform;
  return fmt::format("{}", fmt::join(environment.tags, ","));
}

bool IsAllowed(const Offer& offer, const std::string& subject) {
  if (!offer.has_policy || subject.empty()) {
    return true;
  }
  bool is_understood = false;
  for (const std::string& rule : offer.access) {
    const bool is_subject = rule.starts_with("dn:");
    is_understood |= is_subject;
    if (rule == "ALL" || (is_subject && MatchesPattern(rule.substr(3), subject))) {
      return true;
    }
  }
  return !is_understood;  // of rules that mean nothing to us the site is the judge
}

int64_t SlotsOf(const Environment& environment) {
  return environment.processors.value_or(0) * (environment.nodes.value_or(0));
}

// The environments of a share that could hold the job, or why there are none.
struct Fitting {
  std::vector<const Environment*> environments;
  std::optional<Rejection> rejection;
};

Fitting FindFitting(const Offer& offer, const Share& share, const Demand& demand) {
  Fitting fitting;
  fitting.environments = offer.Of(share);
  const auto keep = [&](const char* attribute, const std::string& wanted, const auto& meets, const auto& text) {
    if (fitting.rejection || fitting.environments.empty()) {
      return;
    }
    std::vector<std::string> seen;
    for (const Environment* environment : fitting.environments) {
      seen.push_back(text(*environment));
    }
    std::erase_if(fitting.environments, [&](const Environment* environment) { return !meets(*environment); });
    if (fitting.environments.empty()) {
      fitting.rejection = Rejection{"", "", attribute, wanted, fmt::format("{}", fmt::join(seen, ", "))};
    }
  };
  for (const Demand::Condition& condition : demand.conditions) {
    keep(condition.attribute.c_str(), fmt::format("{} {}", condition.op, fmt::join(condition.values, " ")),
         [&](const Environment& environment) { return Meets(environment, condition); },
         [&](const Environment& environment) { return Published(environment, condition.attribute); });
  }
  if (demand.memory_mb) {
    keep("memory", fmt::format(">= {} a process", *demand.memory_mb),
         [&](const Environment& environment) { return environment.memory_mb.value_or(0) >= *demand.memory_mb; },
         [](const Environment& environment) { return Said(environment.memory_mb); });
  }
  keep("slots", fmt::format(">= {}", demand.processes),
       [&](const Environment& environment) { return SlotsOf(environment) >= demand.processes; },
       [](const Environment& environment) { return std::to_string(SlotsOf(environment)); });
  return fitting;
}

std::optional<Rejection> Refuse(const Offer& offer, const Share& share, const Demand& demand, const Where& where,
                                int64_t now_s) {
  const auto reject = [](std::string attribute, std::string wanted, std::string published) {
    return Rejection{"", "", std::move(attribute), std::move(wanted), std::move(published)};
  };
  if (!offer.IsFresh(now_s)) {
    return reject("age", fmt::format("<= {} s", *offer.validity_s), fmt::format("{} s", now_s - offer.created_s));
  }
  if (offer.health == "critical" || offer.serving_state == "closed" || offer.serving_state == "draining") {
    return reject("health", "ok, and open",
                  fmt::format("{}, {}{}{}", offer.health, offer.serving_state, offer.health_info.empty() ? "" : ": ",
                              offer.health_info));
  }
  if (!IsAllowed(offer, demand.subject)) {
    return reject("access", demand.subject, fmt::format("{}", fmt::join(offer.access, ", ")));
  }
  if (share.serving_state == "closed" || share.serving_state == "draining") {
    return reject("state", "production or queueing", share.serving_state);
  }
  if (demand.needs_mpi) {
    const bool has = demand.mpi.empty() ? !offer.mpi.empty()
                                        : std::find(offer.mpi.begin(), offer.mpi.end(), demand.mpi) != offer.mpi.end();
    if (!has) {
      return reject("mpi", demand.mpi.empty() ? "any" : demand.mpi, fmt::format("{}", fmt::join(offer.mpi, ", ")));
    }
  }
  if (demand.wall_time_s && share.wall_time_max_s && *share.wall_time_max_s < *demand.wall_time_s) {
    return reject("walltime", fmt::format(">= {} s", *demand.wall_time_s), fmt::format("{} s", *share.wall_time_max_s));
  }
  if (share.slots_per_job && *share.slots_per_job < demand.processes) {
    return reject("slotsperjob", fmt::format(">= {}", demand.processes), std::to_string(*share.slots_per_job));
  }
  if (std::string why = where.WhyNot(FactsOf(offer, share, now_s)); !why.empty()) {
    const size_t seen = why.rfind(" (is ");
    return reject("where", why.substr(0, seen),
                  seen == std::string::npos ? "otherwise" : why.substr(seen + 5, why.size() - seen - 6));
  }
  return FindFitting(offer, share, demand).rejection;
}

std::vector<Candidate::Term> Rank(const Offer& offer, const Share& share, const Demand& demand, int64_t best_clock,
                                  const Distance& distance) {
  std::optional<int64_t> free, total, clock;  // of the environment that has most room for it
  for (const Environment* environment : FindFitting(offer, share, demand).environments) {
    if (!free || environment->free_slots.value_or(0) > *free) {
      free = environment->free_slots;
      total = environment->total_slots;
      clock = environment->clock_mhz;
    }
  }
  if (!free) {
    free = share.free_slots;
  }
  const bool fits = free && *free >= demand.processes;
  std::vector<Candidate::Term> terms;
  terms.push_back({"freeslots", fits ? kFitsNow : 0, fmt::format("{} free, {} wanted", Said(free), demand.processes)});
  if (fits && total && *total > 0) {
    terms.push_back({"left free", kLeftFree * double(*free - demand.processes) / double(*total),
                     fmt::format("{} of {}", *free - demand.processes, *total)});
  }
  if (clock && best_clock > 0) {
    terms.push_back({"clock", kClock * double(*clock) / double(best_clock), fmt::format("{} MHz", *clock)});
  }
  if (!fits) {
    const double wait = std::min(kLongestWait, double(share.wait_s.value_or(0)));
    terms.push_back({"wait", -wait, fmt::format("{} s lately", Said(share.wait_s))});
    const double queue = std::min(kLongestWait, double(share.requested_slots.value_or(0)));
    terms.push_back({"queue", -queue, fmt::format("{} slots are waited for", Said(share.requested_slots))});
  }
  if (const auto rtt_ms = distance ? distance(offer) : std::nullopt) {
    terms.push_back({"near", kNear / (1 + *rtt_ms / 10), fmt::format("{:.1f} ms away", *rtt_ms)});
  }
  return terms;
}

}  // namespace

double Candidate::Score() const {
  double score = 0;
  for (const Term& term : terms) {
    score += term.value;
  }
  return score;
}

Distance DistanceFrom(const std::string& near, const std::vector<Offer>& offers) {
  if (near.empty()) {
    return {};
  }
  std::map<std::string, double> rtts_ms;  // by site
  for (const Offer& offer : offers) {
    for (const Link& link : offer.links) {
      if (link.rtt_ms && offer.site == near) {
        rtts_ms[link.site] = *link.rtt_ms;
      } else if (link.rtt_ms && link.site == near) {
        rtts_ms.try_emplace(offer.site, *link.rtt_ms);
      }
    }
  }
  rtts_ms[near] = 0;
  return [rtts_ms = std::move(rtts_ms)](const Offer& offer) {
    const auto found = rtts_ms.find(offer.site);
    return found == rtts_ms.end() ? std::nullopt : std::optional(found->second);
  };
}

Choice Choose(const std::vector<Offer>& offers, const Demand& demand, const Where& where, int64_t now_s,
              const Distance& distance) {
  Choice choice;
  int64_t best_clock = 0;
  for (const Offer& offer : offers) {
    bool has_queue = false;
    for (const Share& share : offer.shares) {
      if (share.queue != demand.queue) {
        continue;
      }
      has_queue = true;
      if (std::optional<Rejection> rejection = Refuse(offer, share, demand, where, now_s)) {
        rejection->site = offer.site;
        rejection->service = share.service;
        choice.rejections.push_back(*std::move(rejection));
        continue;
      }
      choice.candidates.push_back({&offer, &share, {}});
      for (const Environment* environment : offer.Of(share)) {
        best_clock = std::max(best_clock, environment->clock_mhz.value_or(0));
      }
    }
    if (!has_queue) {
      std::vector<std::string> queues;
      for (const Share& share : offer.shares) {
        queues.push_back(share.queue.empty() ? "-" : share.queue);
      }
      choice.rejections.push_back({offer.site, "", "queue", demand.queue.empty() ? "-" : demand.queue,
                                   queues.empty() ? "none" : fmt::format("{}", fmt::join(queues, ", "))});
    }
  }
  for (Candidate& candidate : choice.candidates) {
    candidate.terms = Rank(*candidate.offer, *candidate.share, demand, best_clock, distance);
  }
  std::stable_sort(choice.candidates.begin(), choice.candidates.end(),
                   [](const Candidate& one, const Candidate& other) { return one.Score() > other.Score(); });
  return choice;
}

std::string Explain(const Choice& choice) {
  std::string text;
  for (const Candidate& candidate : choice.candidates) {
    text += fmt::format("{} ({}): score {:.0f}\n", candidate.offer->site, candidate.share->service, candidate.Score());
    for (const Candidate::Term& term : candidate.terms) {
      text += fmt::format("  {:+8.1f}  {}: {}\n", term.value, term.name, term.fact);
    }
  }
  for (const Rejection& rejection : choice.rejections) {
    text += fmt::format("{}{}{}{}: no: {}: wanted {}, published {}\n", rejection.site,
                        rejection.service.empty() ? "" : " (", rejection.service, rejection.service.empty() ? "" : ")",
                        rejection.attribute, rejection.wanted,
                        rejection.published.empty() ? "nothing" : rejection.published);
  }
  return text;
}

bool MatchesPattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resumed = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resumed = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resumed;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

}  // namespace sekisho::glue
