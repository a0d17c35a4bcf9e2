// SPDX-License-Identifier: Apache-2.0
#include "client/world/profiled_order.h"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "client/world/profile_cache.h"
#include "client/world/rank_choice.h"
#include "client/world/traffic_report.h"

namespace sekisho::client {
namespace {

constexpr const char* kDefaultSeconds = "10";

std::vector<int> SitesOf(const std::vector<WorldPart>& parts) {
  std::map<std::string, int> number;
  std::vector<int> sites;
  for (const WorldPart& part : parts) {
    const int site = number.try_emplace(part.site, int(number.size())).first->second;
    sites.insert(sites.end(), size_t(part.ranks.count), site);
  }
  return sites;
}

// More for more ranks: what is found lasts as long as the program.
std::chrono::milliseconds SearchTime(size_t ranks) {
  return std::chrono::milliseconds(std::clamp<int64_t>(int64_t(ranks) * 20, 500, 10'000));
}

ProfiledOrder Solve(const TrafficReport& report, const std::vector<WorldPart>& parts) {
  const auto choice = ChooseRanks(report, SitesOf(parts), SearchTime(size_t(report.ranks())));
  if (!choice.ok()) {
    fmt::print(stderr, "sekisho: the machine file's order stays: {}\n", Message(choice.status()));
    return {};
  }
  if (choice->seconds == choice->seconds_before) {
    fmt::print(stderr, "sekisho: no order is better than the machine file's: {:.3g} s of messages on their way\n", choice->seconds);
    return {};
  }
  fmt::print(stderr, "sekisho: ranks are ordered by their traffic: {:.3g} s of messages on their way, {:.3g} s in the machine file's order\n",
             choice->seconds, choice->seconds_before);
  return {0, choice->rank_of_slot};
}

}  // namespace

JobOptions ProfiledJob(JobOptions job, const MpirunOptions& options) {
  std::erase_if(job.environment, [](const std::string& entry) { return entry.starts_with("SEKISHO_TRAFFIC="); });
  job.environment.push_back("SEKISHO_TRAFFIC=-");
  if (!options.profile_seconds && !options.profile_iterations) {
    job.environment.push_back(std::string("SEKISHO_TRAFFIC_SECONDS=") + kDefaultSeconds);
  }
  return job;
}

awaitable<ProfiledOrder> OrderByProfile(std::vector<WorldPart> parts, WorldOptions world) {
  const int ranks = parts.back().ranks.first + parts.back().ranks.count;
  const std::string path = ProfilePath(parts);
  if (const auto known = LoadProfile(path, ranks); known.ok()) {
    fmt::print(stderr, "sekisho: its traffic is known from an earlier run; to profile it again: rm {}\n", path);
    co_return Solve(*known, parts);
  }
  fmt::print(stderr, "sekisho: a short run of {} ranks shows who talks to whom\n", ranks);
  auto report = std::make_shared<TrafficReport>(ranks);
  world.feeds_input = world.tags_output = world.is_batch = world.is_held = false;
  world.reads = [report](int rank, bool is_error, std::string_view data) {
    if (is_error) {
      report->Add(rank, data);
    }
    return report->is_whole();
  };
  const int code = co_await RunWorld(parts, world);
  if (report->is_whole()) {
    if (const absl::Status saved = SaveProfile(path, *report); !saved.ok()) {
      fmt::print(stderr, "sekisho: its traffic is not kept for the next time: {}\n", Message(saved));
    }
    co_return Solve(*report, parts);
  }
  fmt::print(stderr, "{}", HarmlessLines(report->other_text()));
  if (code != 0) {
    fmt::print(stderr, "sekisho: that was the short run, without standard input, of --rankmap auto\n");
    co_return ProfiledOrder{code, {}};
  }
  fmt::print(stderr, "sekisho: the short run has shown no traffic of MPI; the machine file's order stays\n");
  co_return ProfiledOrder{};
}

}  // namespace sekisho::client
