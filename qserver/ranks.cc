// SPDX-License-Identifier: Apache-2.0
#include "qserver/ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "common/identity/leader_key.h"
#include "qserver/errors.h"

namespace sekisho::qserver {
namespace {

using Start = proto::ServerMessage::Start;

constexpr std::string_view kWorldPrefix = "world-";
constexpr size_t kWorldDigits = 32;
constexpr char kPmixLock[] = "pmix-lock";
constexpr char kLinks[] = "links";  // as agents look for it

// Where the ranks of one part listen, below and above the next one's: sites may have the same private addresses, and
// then a port tells their ranks apart.
constexpr int kPortsFrom = 2000;
constexpr int kPortsOfPart = 1000;
constexpr int kPartsWithPorts = 62;

constexpr int64_t kReadyMostMs = int64_t{30} * 24 * 3600 * 1000;  // as the leader has it

bool IsWorld(std::string_view name) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return name.starts_with(kWorldPrefix) && name.size() == kWorldPrefix.size() + kWorldDigits &&
         std::all_of(name.begin() + kWorldPrefix.size(), name.end(), is_digit);
}

void SetDefault(Start& start, const std::string& name, const std::string& value) {
  start.mutable_environment()->insert({name, value});
}

// One rank for each task, each once; the first rank is the lowest.
bool IsOrder(const proto::Charter& charter, int64_t count) {
  const std::set<int> ranks(charter.rank().begin(), charter.rank().end());
  return int64_t(ranks.size()) == count && charter.rank_size() == count &&
         *ranks.begin() == charter.first_rank() && *ranks.rbegin() < charter.ranks();
}

// Looks which MPI the program is built with, and serves Open MPI's what MPICH's gets from the agent.
void SetRankProgram(const std::string& program, const std::string& mpi, Start& start) {
  for (const char* word : {program.c_str(), "--mpi", mpi.empty() ? "auto" : mpi.c_str(), "--"}) {
    start.add_wrapper(word);
  }
  (*start.mutable_file())[kPmixLock] = "";
  (*start.mutable_environment())["SEKISHO_PMIX_LOCK"] = std::string("@FILES@/") + kPmixLock;
}

// Open MPI tries the ports of its range from below, so that it listens at the same one everywhere; UCX any.
void SetPorts(int part, Start& start) {
  const int first = kPortsFrom + part % kPartsWithPorts * kPortsOfPart;
  for (const std::string family : {"v4", "v6"}) {
    SetDefault(start, "OMPI_MCA_btl_tcp_port_min_" + family, std::to_string(first));
    SetDefault(start, "OMPI_MCA_btl_tcp_port_range_" + family, std::to_string(kPortsOfPart));
  }
  SetDefault(start, "UCX_TCP_PORT_RANGE", std::to_string(first) + "-" + std::to_string(first + kPortsOfPart - 1));
}

// Ranks of several sites meet at a relay, those of one site directly.
void SetRelay(const proto::Charter& charter, const TaskSettings& settings, Start& start) {
  auto& environment = *start.mutable_environment();
  const RelaySettings& relay = settings.relay;
  environment["NXPROXY_SERVER"] =
      charter.relay() == relay.address ? relay.OfNodes() : charter.relay();
  environment["NXPROXY_SITE"] = settings.site;
  environment["NXPROXY_QUIET"] = "1";  // ranks know each other's addresses by PMI
  if (charter.encrypt()) {
    environment["NXPROXY_ENCRYPT"] = "1";
  }
  (*start.mutable_file())[kLinks] = "";
  environment["NXPROXY_LINKS"] = std::string("@FILES@/") + kLinks;
  // The site's ways past the relay.  Open MPI's ranks have theirs by another name: sekisho-pmix.
  if (!relay.direct.empty()) {
    SetDefault(start, "NXPROXY_DIRECT", relay.direct);
  }
  if (!relay.direct_untranslated.empty()) {
    environment["SEKISHO_DIRECT_UNTRANSLATED"] = relay.direct_untranslated;
  }
  if (relay.is_reversed) {
    SetDefault(start, "NXPROXY_REVERSE", "1");
  }
  // Also nodes with public addresses may let nobody in; and what is not asked is not recorded.
  SetDefault(start, "NXPROXY_RELAYED", "0.0.0.0/0,::/0");
  for (const char* word : {relay.porter.c_str(), "exec", "--"}) {
    start.add_wrapper(word);
  }
  // UCX takes hosts with one kernel for one host, which they are where sites are containers of it.
  SetDefault(start, "UCX_TLS", "tcp,self");
  SetPorts(charter.part(), start);
}

}  // namespace

int64_t ReadyBy(const proto::RequestBody& body, int64_t submitted_ms) {
  const int64_t ready_by_ms = body.submit().charter().ready_by_ms();
  const int64_t within_ms = body.time_ms() < 0 || ready_by_ms < body.time_ms() ? 0 : ready_by_ms - body.time_ms();
  return submitted_ms + std::min(within_ms, kReadyMostMs);
}

int RankOf(const proto::Charter& charter, const proto::Order::Release& release, int task) {
  if (task < charter.rank_size()) {
    return charter.rank(task);
  }
  return task + (release.ranks() > 0 ? release.first_rank() : charter.first_rank());
}

int InputTask(const proto::Charter* charter) {
  for (int task = 0; charter && task < charter->rank_size(); ++task) {
    if (charter->rank(task) == 0) {
      return task;
    }
  }
  return 0;
}

absl::Status CheckCharter(const proto::Charter& charter, const rsl::JobDescription& job,
                          const RelaySettings& relay) {
  if (!IsWorld(charter.world()) || charter.leader_key().size() != identity::kLeaderKeyBytes ||
      charter.part() < 0 || charter.part() >= charter.parts() || charter.first_rank() < 0 ||
      int64_t{charter.first_rank()} + job.count > charter.ranks() ||
      (charter.rank_size() > 0 && !IsOrder(charter, job.count))) {
    return errors::BadCharter("it names no world, leader, or ranks that there can be");
  }
  if (job.job_type != rsl::JobType::kMultiple) {
    return errors::BadCharter("its job is not jobtype=multiple");
  }
  if (charter.relay().empty()) {
    return absl::OkStatus();
  }
  if (relay.address.empty()) {
    return errors::NoRelayHere();
  }
  if (!relay.inner.empty() && charter.relay() != relay.address) {
    return errors::OtherRelay(charter.relay(), relay.address);
  }
  return absl::OkStatus();
}

absl::Status CheckSpeaker(const proto::Charter& charter, const std::string& site, const std::string& subject) {
  if (!charter.encrypt()) {
    return absl::OkStatus();
  }
  const auto known = charter.speaker().find(site);
  const std::string named = known == charter.speaker().end() ? "nobody" : known->second;
  return named == subject ? absl::OkStatus() : errors::OtherSpeaker(site, named, subject);
}

void MakeRanks(const proto::Charter& charter, const rsl::JobDescription& job,
               const proto::JobStatus& status, bool is_released, const TaskSettings& settings,
               std::vector<Start>& starts) {
  const std::vector<std::string> nodes = TaskNodes(job, status.placement());
  std::map<std::string, int> ranks_of;
  for (const std::string& node : nodes) {
    ++ranks_of[node];
  }
  std::string counts;  // of the nodes of SEKISHO_NODES
  for (const proto::Placement& place : status.placement()) {
    counts += (counts.empty() ? "" : ",") + std::to_string(ranks_of[place.node()]);
  }
  const int input = InputTask(&charter);
  if (input > 0 && size_t(input) < starts.size()) {
    starts[input].set_has_input(starts[0].has_input());
    starts[0].set_has_input(false);
  }
  for (size_t task = 0; task < starts.size(); ++task) {
    Start& start = starts[task];
    auto& environment = *start.mutable_environment();
    const int number = RankOf(charter, {}, int(task));
    start.set_await_release(!is_released);
    Start::Rank& rank = *start.mutable_rank();
    rank.set_rank(number);
    rank.set_ranks(charter.ranks());
    rank.set_local_ranks(ranks_of[nodes[task]]);
    rank.set_world(charter.world());
    environment["SEKISHO_RANK"] = std::to_string(number);
    environment["SEKISHO_RANKS"] = std::to_string(charter.ranks());
    if (charter.rank_size() == 0) {
      environment["SEKISHO_NODE_RANKS"] = counts;
    }
    SetDefault(start, "GLOBUS_DUROC_SUBJOB_INDEX", std::to_string(charter.part()));
    if (!settings.mpi.mpich_preload.empty()) {
      std::string& preload = environment["LD_PRELOAD"];
      preload += (preload.empty() ? "" : ":") + settings.mpi.mpich_preload;
    }
    if (!settings.mpi.rank_program.empty()) {
      SetRankProgram(settings.mpi.rank_program, job.mpi_type, start);
    }
    if (!charter.relay().empty()) {
      SetRelay(charter, settings, start);
    }
  }
}

}  // namespace sekisho::qserver
