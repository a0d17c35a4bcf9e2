// SPDX-License-Identifier: Apache-2.0
#include "client/verbs/published.h"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/job/job_text.h"

namespace sekisho::client {
namespace {

using glue::Environment;
using glue::Offer;
using glue::Share;

std::string Text(std::optional<int64_t> number) { return number ? std::to_string(*number) : "-"; }
std::string Flag(std::optional<bool> flag) { return !flag ? "?" : *flag ? "yes" : "no"; }

nlohmann::json Json(std::optional<int64_t> number) { return number ? nlohmann::json(*number) : nlohmann::json(); }
nlohmann::json Json(std::optional<bool> flag) { return flag ? nlohmann::json(*flag) : nlohmann::json(); }

struct Sums {
  std::optional<int64_t> total, nodes, down;
  std::set<int64_t> clocks;
  std::set<std::string> connectivity;
};

void Add(std::optional<int64_t>& sum, std::optional<int64_t> more) {
  if (more) {
    sum = sum.value_or(0) + *more;
  }
}

// "out" = nodes reach the outside, "in" = they are reached from there.
std::string Connectivity(const Environment& environment) {
  const bool out = environment.reaches_out.value_or(false), in = environment.reached.value_or(false);
  return out && in ? "in,out" : out ? "out" : in ? "in" : "none";
}

Sums Sum(const std::vector<const Environment*>& environments) {
  Sums sums;
  for (const Environment* environment : environments) {
    Add(sums.total, environment->total_slots);
    Add(sums.nodes, environment->nodes);
    Add(sums.down, environment->nodes_down);
    if (environment->clock_mhz) {
      sums.clocks.insert(*environment->clock_mhz);
    }
    sums.connectivity.insert(Connectivity(*environment));
  }
  return sums;
}

std::string StateOf(const Offer& offer, int64_t now_s) {
  return !offer.IsFresh(now_s) ? "stale" : offer.health == "ok" ? "up" : offer.health == "critical" ? "down" : offer.health;
}

std::string AgeOf(const Offer& offer, int64_t now_s) {
  return offer.created_s == 0 ? "-" : Age((now_s - offer.created_s) * 1000);
}

nlohmann::json ShareJson(const Offer& offer, const Share& share) {
  const Sums sums = Sum(offer.Of(share));
  return {{"service", share.service},          {"queue", share.queue},
          {"state", share.serving_state},      {"slots_free", Json(share.free_slots)},
          {"slots_used", Json(share.used_slots)}, {"slots_total", Json(sums.total)},
          {"slots_per_job", Json(share.slots_per_job)}, {"running", Json(share.running)},
          {"waiting", Json(share.waiting)},    {"wait_s", Json(share.wait_s)},
          {"wall_time_max_s", Json(share.wall_time_max_s)}};
}

nlohmann::json EnvironmentJson(const Environment& environment) {
  return {{"resource", environment.name},
          {"architecture", environment.platform},
          {"os", environment.os},
          {"memory_mb", Json(environment.memory_mb)},
          {"clock_mhz", Json(environment.clock_mhz)},
          {"processors", Json(environment.processors)},
          {"nodes", Json(environment.nodes)},
          {"nodes_used", Json(environment.nodes_used)},
          {"nodes_down", Json(environment.nodes_down)},
          {"slots_free", Json(environment.free_slots)},
          {"connectivity_in", Json(environment.reached)},
          {"connectivity_out", Json(environment.reaches_out)},
          {"tags", environment.tags}};
}

// The site's sums, under the names that asking the site itself gives them.
nlohmann::json SiteJson(const Offer& offer, int64_t now_s) {
  nlohmann::json json = {{"site", offer.site},
                         {"contact", offer.contact},
                         {"is_up", StateOf(offer, now_s) == "up"},
                         {"state", StateOf(offer, now_s)},
                         {"version", offer.version},
                         {"mpi", offer.mpi},
                         {"age_s", now_s - offer.created_s},
                         {"validity_s", Json(offer.validity_s)},
                         {"source", "directory"}};
  if (!offer.health_info.empty()) {
    json["reason"] = offer.health_info;
  }
  std::optional<int64_t> free, total, waiting, running;
  json["resources"] = nlohmann::json::array();
  for (const Environment& environment : offer.environments) {
    Add(free, environment.free_slots);
    Add(total, environment.total_slots);
    json["resources"].push_back(EnvironmentJson(environment));
  }
  json["services"] = nlohmann::json::array();
  json["queues"] = nlohmann::json::array();
  for (const Share& share : offer.shares) {
    Add(waiting, share.waiting);
    Add(running, share.running);
    if (share.queue.empty()) {
      json["services"].push_back(share.service);
    } else {
      json["queues"].push_back(share.queue);
    }
  }
  json["slots_free"] = Json(free);
  json["slots_total"] = Json(total);
  json["queued_jobs"] = Json(waiting);
  json["running_jobs"] = Json(running);
  json["shares"] = nlohmann::json::array();
  return json;
}

}  // namespace

std::vector<PublishedShare> Select(const std::vector<Offer>& offers, const glue::Where& where, int64_t now_s) {
  std::vector<PublishedShare> selected;
  for (const Offer& offer : offers) {
    for (const Share& share : offer.shares) {
      if (where.IsEmpty() || where.Holds(glue::FactsOf(offer, share, now_s))) {
        selected.push_back({&offer, &share});
      }
    }
    if (offer.shares.empty() && where.Holds(glue::FactsOf(offer, {}, now_s))) {
      selected.push_back({&offer, nullptr});
    }
  }
  return selected;
}

std::string PublishedTable(const std::vector<PublishedShare>& shares, int64_t now_s) {
  std::vector<std::vector<std::string>> rows = {
      {"SITE", "CONTACT", "STATE", "FREE/SLOTS", "QUEUE", "RUNNING", "WAITING", "NODES", "CLOCK", "CONNECTIVITY", "AGE"}};
  for (const auto& [offer, share] : shares) {
    const Share none;
    const Share& shown = share == nullptr ? none : *share;
    const Sums sums = Sum(offer->Of(shown));
    rows.push_back({offer->site, offer->contact, StateOf(*offer, now_s),
                    fmt::format("{}/{}", Text(shown.free_slots), Text(sums.total)),
                    shown.queue.empty() ? "-" : shown.queue, Text(shown.running), Text(shown.waiting),
                    sums.nodes ? fmt::format("{}/{}", *sums.nodes - sums.down.value_or(0), *sums.nodes) : "-",
                    sums.clocks.empty() ? "-" : fmt::format("{} MHz", fmt::join(sums.clocks, ",")),
                    sums.connectivity.empty() ? "-" : fmt::format("{}", fmt::join(sums.connectivity, "/")),
                    AgeOf(*offer, now_s)});
  }
  return Columns(rows);
}

nlohmann::json PublishedJson(const std::vector<PublishedShare>& shares, int64_t now_s) {
  nlohmann::json sites = nlohmann::json::array();
  const Offer* last = nullptr;
  for (const auto& [offer, share] : shares) {
    if (offer != last) {
      sites.push_back(SiteJson(*offer, now_s));
      last = offer;
    }
    if (share != nullptr) {
      sites.back()["shares"].push_back(ShareJson(*offer, *share));
    }
  }
  return sites;
}

std::string PublishedInFull(const Offer& offer, int64_t now_s) {
  std::string text = fmt::format("published {} ago, true for {} s\n", AgeOf(offer, now_s), Text(offer.validity_s));
  if (!offer.health_info.empty()) {
    text += fmt::format("health    {}: {}\n", offer.health, offer.health_info);
  }
  std::vector<std::vector<std::string>> shares = {
      {"SERVICE", "STATE", "FREE", "USED", "A JOB", "RUNNING", "WAITING", "WAIT", "WALL TIME"}};
  for (const Share& share : offer.shares) {
    shares.push_back({share.service, share.serving_state, Text(share.free_slots), Text(share.used_slots),
                      Text(share.slots_per_job), Text(share.running), Text(share.waiting),
                      share.wait_s ? Age(*share.wait_s * 1000) : "-",
                      share.wall_time_max_s ? Age(*share.wall_time_max_s * 1000) : "-"});
  }
  std::vector<std::vector<std::string>> resources = {
      {"RESOURCE", "ARCH", "OS", "MEMORY", "CLOCK", "PROCESSORS", "NODES", "USED", "DOWN", "IN", "OUT", "TAGS"}};
  for (const Environment& environment : offer.environments) {
    resources.push_back({environment.name, environment.platform, environment.os, Text(environment.memory_mb) + " MB",
                         Text(environment.clock_mhz) + " MHz", Text(environment.processors), Text(environment.nodes),
                         Text(environment.nodes_used), Text(environment.nodes_down), Flag(environment.reached),
                         Flag(environment.reaches_out), fmt::format("{}", fmt::join(environment.tags, ","))});
  }
  text += "\n" + Columns(shares) + "\n" + Columns(resources);
  text += fmt::format("\nmpi       {}\naccess    {}\n", fmt::join(offer.mpi, " "),
                      offer.has_policy ? fmt::format("{}", fmt::join(offer.access, "; ")) : "not said");
  for (const std::string& other : offer.other) {
    text += fmt::format("other     {}\n", other);
  }
  return text;
}

}  // namespace sekisho::client
