// SPDX-License-Identifier: Apache-2.0
#include "client/local/verb_pm_ping.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <netdb.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/local/pm_daemon.h"
#include "client/verbs/verbs.h"
#include "transport/pm/ping.h"

namespace sekisho::client {
namespace {

struct PingOptions {
  std::string target;  // HOST[:CTX], or the job file
  std::string job;
  int node = -1;
  int as = -1;
  unsigned count = 100;
  double interval_ms = 1;
  bool is_json = false;
};

double Microseconds(const pm::PingResult& result, double share) {
  const auto last = static_cast<double>(result.times.size() - 1);
  return static_cast<double>(result.times[static_cast<std::size_t>(share * last)]) / 1000;
}

nlohmann::json PingAsJson(const pm::PingResult& result, const pm::PathResult& path) {
  nlohmann::json out = {
      {"sent", result.sent},
      {"received", result.received},
      {"lost_percent", 100.0 * (result.sent - result.received) / std::max(result.sent, 1u)},
      {"duplicates", result.duplicates},
      {"reordered", result.reordered},
      {"path_mtu", path.mtu == 0 ? nlohmann::json() : nlohmann::json(path.mtu)},
      {"udp_segment", path.segmentation},
      {"udp_gro", path.coalescing}};
  constexpr std::array<std::pair<const char*, double>, 6> kShares = {
      {{"min", 0}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}}};
  for (const auto& [name, share] : kShares) {
    out["rtt_us"][name] = Microseconds(result, share);
  }
  return out;
}

void ShowPing(const nlohmann::json& ping) {
  const auto us = [&](const char* name) { return ping["rtt_us"][name].get<double>(); };
  fmt::print("node {}: {} sent, {} received, {:.1f} % lost, {} duplicates, {} reordered\n",
             ping["node"].dump(), ping["sent"].dump(), ping["received"].dump(),
             ping["lost_percent"].get<double>(), ping["duplicates"].dump(),
             ping["reordered"].dump());
  fmt::print("rtt us: min {:.1f}, p50 {:.1f}, p90 {:.1f}, p99 {:.1f}, p99.9 {:.1f}, max {:.1f}\n",
             us("min"), us("p50"), us("p90"), us("p99"), us("p999"), us("max"));
  fmt::print("path MTU {}; segmentation (UDP_SEGMENT) {}, coalescing (UDP_GRO) {}\n",
             ping["path_mtu"].is_null() ? "unknown" : ping["path_mtu"].dump(),
             ping["udp_segment"] == true ? "in use" : "not in use",
             ping["udp_gro"] == true ? "in use" : "not in use");
}

int Wrong(const std::string& what) {
  fmt::print(stderr, "sekisho pm ping: {}\n", what);
  return kPmUsage;
}

// The job, and the node that is meant; an exit code if there is none.
int FindTarget(PingOptions& options, pm::JobFile& job) {
  if (!options.job.empty() && options.node >= 0) {
    return Wrong("NODE goes with the job's file as the target, HOST[:CTX] with --job: not both");
  }
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(options.target, ignored);
  if (options.job.empty() && (is_file || options.node >= 0)) {
    options.node = options.node < 0 ? 1 : options.node;
    return ReadPmJob(options.target, job) ? 0 : kPmUsage;
  }
  const char* const usual = std::getenv("PM_JOB_FILE");
  const bool is_named = usual != nullptr && std::string_view(usual) != "pmi";
  const std::string path = !options.job.empty() ? options.job : is_named ? usual : "";
  if (path.empty()) {
    return Wrong(
        fmt::format("{} is no job file, so it is a host, but of which job?  Name the job's file "
                    "with --job or in "
                    "PM_JOB_FILE: nodes answer only who has the job's key",
                    options.target));
  }
  if (!ReadPmJob(path, job)) {
    return kPmUsage;
  }
  std::string wrong;
  options.node = PmNodeAt(job, ParsePmHost(options.target), wrong);
  return options.node >= 0 ? 0 : Wrong(fmt::format("{}: {}", path, wrong));
}

// As the node that is named, or as the first of the others that has an address of this host.
int OpenPinger(const PingOptions& options, const pm::JobFile& job,
               std::unique_ptr<pm::Pinger>& pinger) {
  const int first = std::max(options.as, 0), last = options.as >= 0 ? first : job.nodes - 1;
  std::error_code error;
  for (int as = first; as <= last; ++as) {
    if (as == options.node && options.as < 0) continue;
    pinger = std::make_unique<pm::Pinger>();
    error = pinger->Open(job, static_cast<pm::NodeId>(as), static_cast<pm::NodeId>(options.node));
    if (error != std::errc::address_not_available) break;
  }
  if (error == std::errc::address_not_available) {
    return Wrong(
        options.as >= 0
            ? fmt::format("node {} is not of this host, from which it is to ask", options.as)
            : fmt::format("no other node of the job than {} is of this host: ask where one "
                          "is",
                          options.node));
  }
  return error ? Wrong(error.message()) : 0;
}

int PingVerb(PingOptions options) {
  pm::JobFile job;
  if (const int code = FindTarget(options, job)) {
    return code;
  }
  std::unique_ptr<pm::Pinger> pinger;
  if (const int code = OpenPinger(options, job, pinger)) {
    return code;
  }
  pm::PingResult result;
  pinger->Ping(options.count, static_cast<pm::Nanos>(options.interval_ms * pm::kMillisecond),
               result);
  if (result.times.empty()) {
    fmt::print(stderr,
               "sekisho pm ping: node {} does not answer any of {} datagrams: it does not run, a "
               "firewall drops UDP on the way, or it has another key\n",
               options.node, result.sent);
    return kPmFailed;
  }
  pm::PathResult path;
  pinger->FindPath(result.times.back(), path);
  nlohmann::json ping = PingAsJson(result, path);
  ping["node"] = options.node;
  if (options.is_json) {
    fmt::print("{}\n", ping.dump(2));
  } else {
    ShowPing(ping);
  }
  return 0;
}

}  // namespace

PmHost ParsePmHost(const std::string& text) {
  const bool is_bracketed = text.starts_with('[');
  const std::size_t end = is_bracketed ? text.find(']') : text.find(':');
  if (end == std::string::npos || (!is_bracketed && text.find(':', end + 1) != std::string::npos)) {
    return {text};  // a name, or an address of IPv6 without a context
  }
  PmHost at = {is_bracketed ? text.substr(1, end - 1) : text.substr(0, end)};
  const std::string rest = text.substr(is_bracketed ? end + 1 : end);
  if (rest.empty()) {
    return at;
  }
  std::uint16_t context = 0;
  const char* const last = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data() + 1, last, context);
  if (rest[0] != ':' || error != std::errc() || stop != last) {
    return {text};
  }
  at.context = context;
  return at;
}

int PmNodeAt(const pm::JobFile& job, const PmHost& at, std::string& wrong) {
  if (at.context >= 0 && at.context != job.context) {
    wrong = fmt::format("this job is context {}, not {}", job.context, at.context);
    return -1;
  }
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  if (const int error = getaddrinfo(at.host.c_str(), nullptr, &hints, &found)) {
    wrong = fmt::format("'{}' is no host: {}", at.host, gai_strerror(error));
    return -1;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
  for (int node = 0; node < job.nodes; ++node) {
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      if (job.addresses[static_cast<std::size_t>(node)].ip == pm::AddressFrom(*one->ai_addr).ip) {
        return node;
      }
    }
  }
  wrong = fmt::format("no node of this job is at {}", at.host);
  return -1;
}

void AddPmPingVerb(CLI::App& pm, Invocation& invocation) {
  auto ping = std::make_shared<PingOptions>();
  CLI::App* verb =
      pm.add_subcommand("ping", "Round trips to a node of a job, losses, path MTU, offloads");
  verb->add_option("TARGET", ping->target,
                   "HOST[:CTX] (the job: --job or PM_JOB_FILE), or the job's file")
      ->required();
  verb->add_option("NODE", ping->node, "After the job's file: the node asked (else 1)");
  verb->add_option("--job", ping->job, "The job's file");
  verb->add_option("--as", ping->as, "The node that asks (else the first other one of this host)");
  verb->add_option("--count", ping->count, "Datagrams")
      ->check(CLI::Range(1u, 1000000u))
      ->capture_default_str();
  verb->add_option("--interval", ping->interval_ms, "Milliseconds")
      ->check(CLI::Range(0.01, 10000.0))
      ->capture_default_str();
  verb->add_flag("--json", ping->is_json, "For machines");
  verb->callback([ping, &invocation] { invocation.exit_code = PingVerb(*ping); });
}

}  // namespace sekisho::client
