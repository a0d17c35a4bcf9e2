// SPDX-License-Identifier: Apache-2.0
#include "client/topology/verb_topology.h"

#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>

#include "client/topology/topology_bandwidth.h"
#include "client/topology/topology_broadcast.h"
#include "client/topology/topology_infer.h"
#include "client/topology/topology_show.h"

namespace sekisho::client {
namespace {

constexpr int kUsageError = 64;
constexpr int kFailed = 125;

int ExitCode(const absl::Status& status) {
  if (status.ok()) {
    return 0;
  }
  std::cerr << std::string(status.message()) << '\n';
  return absl::IsInvalidArgument(status) ? kUsageError : kFailed;
}

void AddSource(CLI::App* app, TopologySourceOptions& o) {
  app->add_option("--hosts", o.hosts,
                  "Host names, one a line: NAME [SITE]; measure for real, probers by ssh");
  app->add_option("--launch", o.launch,
                  "... by this instead: it starts sekisho-agent --probe-only on $HOST (of $SITE)");
  app->add_option("-r,--resource", o.sites,
                  "Measure for real: probers as jobs of this site, or these (again: -r SITE)")
      ->allow_extra_args(false);
  app->add_option("--job", o.job, "Measure for real: probers as jobs on the nodes of this job");
  app->add_option("--nodes", o.nodes,
                  "... on so many of its nodes (again: of the next site; none: on all)")
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 65536));
  app->add_option("--prober", o.prober, "... where the program is there")->capture_default_str();
  app->add_option("--interface", o.interface, "... and which network interface it is about");
  app->add_option("--at-once", o.most_at_once,
                  "At most so many measurements at once in all, of hosts near each other, for emulated networks (no limit)")
      ->check(CLI::Range(1, 65536));
  app->add_option("--oracle", o.oracle, "Ask this command for measurements, in virtual time");
  app->add_option("--timeout", o.timeout_s,
                  "Seconds to wait for the oracle, or until probers are ready")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
}

void AddInfer(CLI::App* topology, int& exit_code) {
  const auto o = std::make_shared<TopologyInferOptions>();
  CLI::App* app = topology->add_subcommand("infer", "Infer the tree from round-trip times alone");
  AddSource(app, o->source);
  app->add_option("--out", o->out, "Where the tree goes: lines \"u v latency_us\"")->required();
  app->add_option("--report", o->report, "And all that is known of it, as JSON");
  app->add_option("--method", o->method, "fast or paper")->capture_default_str();
  CLI::Option* hints =
      app->add_flag("--site-hints", o->has_site_hints, "Believe the second column of --hosts");
  app->add_option("--known", o->known,
                  "Bring this tree up to date: is it true, and where are new hosts?")
      ->excludes(hints);
  app->add_option("--seed", o->seed, "Seed of all randomness")->capture_default_str();
  const auto is_live = std::make_shared<bool>(false);
  const auto period_s = std::make_shared<int>(600);
  CLI::Option* live = app->add_flag(
      "--live", *is_live, "Go on: look again every --period seconds, and write the tree again");
  app->add_option("--period", *period_s, "Seconds")
      ->capture_default_str()
      ->needs(live)
      ->check(CLI::Range(1, 86400));
  app->callback([o, is_live, period_s, &exit_code] {
    const auto wait = [&] {
      std::cout.flush();
      std::this_thread::sleep_for(std::chrono::seconds(*period_s));
      return true;
    };
    exit_code = ExitCode(*is_live ? KeepTopology(*o, wait, std::cout, std::cerr)
                                  : InferTopology(*o, std::cout, std::cerr));
  });
}

void AddMatrix(CLI::App* topology, int& exit_code) {
  const auto o = std::make_shared<TopologyMatrixOptions>();
  CLI::App* app = topology->add_subcommand("matrix", "Round-trip times of all pairs of hosts");
  AddSource(app, o->source);
  app->add_option("--out", o->out, "Where the matrix goes: lines \"i j rtt_us\"")->required();
  app->add_option("--method", o->method, "tree or alpha")->capture_default_str();
  app->add_option("--alpha", o->alpha, "alpha: how much nearer is much nearer")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e6));
  app->add_option("--seed", o->seed, "Seed of all randomness")->capture_default_str();
  app->callback(
      [o, &exit_code] { exit_code = ExitCode(WriteTopologyMatrix(*o, std::cout, std::cerr)); });
}

void AddSimulate(CLI::App* topology, int& exit_code) {
  const auto o = std::make_shared<TopologySimulateOptions>();
  CLI::App* app = topology->add_subcommand("simulate", "Infer a network that is known, and judge");
  CLI::Option_group* what = app->add_option_group("network");
  what->add_option("--family", o->family, "Made up: single64, grid256, star48, ...");
  what->add_option("--truth", o->truth, "From a file: lines \"u v latency_uv latency_vu mbps\"");
  what->require_option(1);
  app->add_option("--hosts", o->hosts, "Hosts of --truth, NAME [SITE] a line (all leaves)");
  app->add_option("--noise", o->noise, "Of --truth: quiet, lab or exact")->capture_default_str();
  app->add_option("--method", o->method, "fast or paper")->capture_default_str();
  app->add_flag("--site-hints", o->has_site_hints, "Tell the method the sites");
  app->add_option("--seed", o->seed, "Seed of all randomness")->capture_default_str();
  app->add_option("--out", o->out, "Where the tree goes");
  app->add_flag("--json", o->is_json, "Print as JSON");
  app->callback([o, &exit_code] { exit_code = ExitCode(SimulateTopology(*o, std::cout)); });
}

void AddBandwidth(CLI::App* topology, int& exit_code) {
  const auto o = std::make_shared<TopologyBandwidthOptions>();
  CLI::App* app = topology->add_subcommand("bandwidth", "What the links of a tree carry");
  app->add_option("TREE", o->tree, "File that infer wrote")->required();
  AddSource(app, o->source);
  app->add_option("--transfer-ms", o->transfer_ms, "How long each transfer lasts")
      ->capture_default_str()
      ->check(CLI::Range(10, 60000));
  app->add_flag("--json", o->is_json, "For programs");
  app->callback([o, &exit_code] { exit_code = ExitCode(MapBandwidth(*o, std::cout, std::cerr)); });
}

void AddBroadcast(CLI::App* topology, int& exit_code) {
  const auto o = std::make_shared<TopologyBroadcastOptions>();
  CLI::App* app =
      topology->add_subcommand("broadcast", "Copy a file from one host to all others along a tree");
  app->add_option("FILE", o->file, "On the first host")->required();
  app->add_option("DEST", o->destination, "On all others; must not be there yet as DEST.part")
      ->required();
  app->add_option("--tree", o->tree, "File that infer wrote (else it is inferred first)");
  app->add_option("--from", o->from, "The first host (the first of all)");
  AddSource(app, o->source);
  app->callback([o, &exit_code] { exit_code = ExitCode(BroadcastFile(*o, std::cout, std::cerr)); });
}

void AddShow(CLI::App* topology, int& exit_code) {
  const auto o = std::make_shared<TopologyShowOptions>();
  CLI::App* app = topology->add_subcommand("show", "Show a tree");
  app->add_option("TREE", o->tree, "File that infer wrote")->required();
  app->add_option("--hosts", o->hosts, "Which names are hosts (those with one link)");
  app->add_option("--report", o->report, "Of infer --report: how sure the switches are");
  app->add_option("--bandwidth", o->bandwidth, "Of bandwidth --json: what the links carry");
  CLI::Option* dot = app->add_flag("--dot", o->is_dot, "For Graphviz");
  CLI::Option* svg = app->add_flag("--svg", o->is_svg, "A picture")->excludes(dot);
  app->add_flag("--json", o->is_json, "For programs")->excludes(dot)->excludes(svg);
  app->callback([o, &exit_code] { exit_code = ExitCode(ShowTopology(*o, std::cout)); });
}

}  // namespace

void AddTopologyVerb(CLI::App& app, int& exit_code) {
  CLI::App* topology =
      app.add_subcommand("topology", "The network as a tree, from round-trip times");
  topology->require_subcommand(1);
  AddInfer(topology, exit_code);
  AddMatrix(topology, exit_code);
  AddBandwidth(topology, exit_code);
  AddBroadcast(topology, exit_code);
  AddShow(topology, exit_code);
  AddSimulate(topology, exit_code);
}

}  // namespace sekisho::client
