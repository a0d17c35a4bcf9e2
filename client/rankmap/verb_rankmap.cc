// SPDX-License-Identifier: Apache-2.0
#include "client/rankmap/verb_rankmap.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/rankmap/rankmap_files.h"
#include "client/rankmap/rankmap_solve.h"
#include "rankmap/bound.h"
#include "rankmap/generate.h"
#include "rankmap/importers.h"
#include "rankmap/outputs.h"
#include "rankmap/pattern_format.h"

namespace sekisho::client {
namespace {

constexpr int kUsageError = 64;

int ExitCode(const absl::Status& status) {
  if (!status.ok()) {
    std::cerr << std::string(status.message()) << '\n';
    return kUsageError;
  }
  return 0;
}

struct EvalOptions {
  std::string network;
  std::string pattern;
  std::string placement;
  bool is_json = false;
};

absl::Status Eval(const EvalOptions& options) {
  ASSIGN_OR_RETURN(const rankmap::Network network, ReadNetwork(options.network));
  ASSIGN_OR_RETURN(const rankmap::Pattern pattern, ReadPattern(options.pattern));
  RETURN_IF_ERROR(CheckFit({options.pattern, options.network}, pattern, network, rankmap::Objective::kHopBytes));
  ASSIGN_OR_RETURN(const rankmap::Placement placement,
                   ReadPlacement(options.placement, pattern, network));
  const rankmap::Values values = rankmap::Evaluate(pattern, network, placement);
  // The product is exact: it may have more than 64 bits.
  unsigned __int128 product = static_cast<unsigned __int128>(values.hops_sum) * values.max_link;
  std::string digits;
  for (; product > 0 || digits.empty(); product /= 10) {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(product % 10)));
  }
  if (options.is_json) {
    std::cout << fmt::format(
        "{{\"hop_bytes\": {}, \"avg_hops\": {}, \"hops_sum\": {}, \"max_link\": {}, "
        "\"rmatt_eval\": {}, \"step_sum\": {}}}\n",
        values.hop_bytes, nlohmann::json(values.avg_hops).dump(), values.hops_sum, values.max_link,
        digits, values.step_sum);
  } else {
    std::cout << fmt::format(
        "hop_bytes  {}\navg_hops   {:.6f}\nhops_sum   {}\nmax_link   {}\nrmatt_eval {}\nstep_sum   "
        "{}\n",
        values.hop_bytes, values.avg_hops, values.hops_sum, values.max_link, digits,
        values.step_sum);
  }
  return absl::OkStatus();
}

absl::Status Bound(const EvalOptions& options, const std::string& qap) {
  if (!qap.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(qap));
    ASSIGN_OR_RETURN(const rankmap::QapInstance instance, rankmap::ParseQap(text, qap));
    const int64_t bound = rankmap::QapBound(instance);
    std::cout << (options.is_json ? fmt::format("{{\"qap\": {}}}\n", bound)
                                  : fmt::format("qap {}\n", bound));
    return absl::OkStatus();
  }
  if (options.network.empty() || options.pattern.empty()) {
    return absl::InvalidArgumentError("--network and --pattern (or --qap) are needed");
  }
  ASSIGN_OR_RETURN(const rankmap::Network network, ReadNetwork(options.network));
  ASSIGN_OR_RETURN(const rankmap::Pattern pattern, ReadPattern(options.pattern));
  RETURN_IF_ERROR(CheckFit({options.pattern, options.network}, pattern, network, rankmap::Objective::kHopBytes));
  const rankmap::Bounds bounds = rankmap::LowerBounds(pattern, network);
  const double average =
      pattern.total_bytes() == 0
          ? 0
          : static_cast<double>(bounds.hop_bytes) / static_cast<double>(pattern.total_bytes());
  const nlohmann::json json = {{"hop_bytes", bounds.hop_bytes},
                               {"avg_hops", average},
                               {"hops_sum", bounds.hops_sum},
                               {"max_link", bounds.max_link},
                               {"step_sum", bounds.step_sum}};
  if (options.is_json) {
    std::cout << json.dump() << '\n';
    return absl::OkStatus();
  }
  for (const auto& [key, value] : json.items()) {
    std::cout << fmt::format("{:<10} {}\n", key, value.dump());
  }
  return absl::OkStatus();
}

struct GenOptions {
  std::string name;
  std::string grid;
  std::string output;
  rankmap::GenerateOptions generate;
  bool is_open = false;
};

absl::Status Gen(GenOptions options) {
  for (size_t first = 0; !options.grid.empty() && first <= options.grid.size();) {
    const size_t end = std::min(options.grid.find('x', first), options.grid.size());
    int size = 0;
    if (!CLI::detail::lexical_cast(options.grid.substr(first, end - first), size) || size < 1) {
      return absl::InvalidArgumentError(fmt::format("grid '{}': expected 64x64", options.grid));
    }
    options.generate.grid.push_back(size);
    first = end + 1;
  }
  options.generate.is_periodic = !options.is_open;
  ASSIGN_OR_RETURN(const rankmap::Pattern pattern,
                   rankmap::Generate(options.name, options.generate));
  const std::string text = rankmap::PrintPattern(pattern);
  if (options.output.empty() || options.output == "-") {
    std::cout << text;
    return absl::OkStatus();
  }
  return WriteFile(options.output, text);
}

struct ConvertOptions {
  std::string network;
  std::string pattern;
  std::string placement;
  std::string to;
  std::string hosts;
  std::string output;
};

absl::StatusOr<std::string> ConvertPattern(const ConvertOptions& options) {
  ASSIGN_OR_RETURN(const rankmap::Pattern pattern, ReadPattern(options.pattern));
  if (options.to == "scotch") {
    return rankmap::PrintScotchGraph(pattern);
  }
  if (options.to == "metis") {
    return rankmap::PrintMetisGraph(pattern);
  }
  if (options.to == "pattern") {
    return rankmap::PrintPattern(pattern);
  }
  return absl::InvalidArgumentError("--to with a pattern: expected pattern, scotch or metis");
}

absl::StatusOr<std::string> ConvertPlacement(const ConvertOptions& options) {
  std::vector<int> nodes;
  int node_count = 0;
  if (options.network.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(options.placement));
    ASSIGN_OR_RETURN(nodes, rankmap::ParsePlacement(text, options.placement));
    node_count = *std::max_element(nodes.begin(), nodes.end()) + 1;
  } else {
    ASSIGN_OR_RETURN(const rankmap::Network network, ReadNetwork(options.network));
    ASSIGN_OR_RETURN(nodes, ReadNodes(options.placement, network, {}));
    node_count = network.nodes();
  }
  std::vector<std::string> hosts;
  if (!options.hosts.empty()) {
    ASSIGN_OR_RETURN(hosts, ReadHosts(options.hosts, node_count));
  }
  for (int node = 0; options.hosts.empty() && node < node_count; ++node) {
    hosts.push_back(fmt::format("node{}", node));
  }
  if (options.to == "rankfile") {
    return rankmap::PrintRankfile(nodes, hosts);
  }
  if (options.to == "machinefile" || options.to == "slurm") {
    return rankmap::PrintHostList(nodes, hosts);
  }
  if (options.to == "cray") {
    return rankmap::PrintCrayRankOrder(nodes);
  }
  if (options.to == "rmatt") {
    return rankmap::PrintRmattMap(nodes, node_count);
  }
  return absl::InvalidArgumentError(
      "--to with a placement: expected rankfile, machinefile, slurm, cray or rmatt");
}

absl::Status Convert(const ConvertOptions& options) {
  if (options.pattern.empty() == options.placement.empty()) {
    return absl::InvalidArgumentError("convert: give --pattern or --placement");
  }
  ASSIGN_OR_RETURN(const std::string text,
                   options.placement.empty() ? ConvertPattern(options) : ConvertPlacement(options));
  if (options.output.empty() || options.output == "-") {
    std::cout << text;
    return absl::OkStatus();
  }
  return WriteFile(options.output, text);
}

void AddProblem(CLI::App* app, std::string& network, std::string& pattern) {
  app->add_option("--network", network,
                  "Network file, TREE.edges of `topology infer` (TREE.edges,HOSTS: node i is line i), "
                  "or torus:16x16x16, mesh:8x8, tree:4:2,8:1 (also -nw)");
  app->add_option("--pattern", pattern, "Pattern file (also -pt)");
}

void AddSolve(CLI::App* rankmap, int& exit_code) {
  const auto o = std::make_shared<RankmapSolveOptions>();
  CLI::App* app = rankmap->add_subcommand(
      "solve", "Search a good placement; Ctrl-C ends the search and keeps the best so far");
  AddProblem(app, o->network, o->pattern);
  app->add_option("--qap", o->qap, "Solve a QAPLIB .dat instead; -o is a .sln then");
  app->add_option("-o,--output", o->output, "Where the placement goes (-: standard output)")->required();
  app->add_option("--objective", o->objective, "qap, hopbytes, maxlink, rmatt or steps")
      ->capture_default_str();
  app->add_option("--weight", o->weight, "What qap counts: messages or bytes")
      ->capture_default_str();
  app->add_option("--method", o->method,
                  "auto, bisem, optim, anneal; with --qap auto, grasp, tabu, iterated")
      ->capture_default_str();
  app->add_option("--time", o->time, "Stop after this time, as 60s or 10m (60s)");
  app->add_option("--iterations", o->iterations, "Stop after this many moves: repeatable")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 60));
  app->add_option("--target", o->target, "Stop when the objective is this good");
  app->add_option("--seed", o->seed, "Seed of all randomness")->capture_default_str();
  app->add_option("--threads", o->threads, "Searches side by side")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app->add_option("--max-itrs", o->max_itrs, "BISEM: cuts before ranks go to random nodes (all)");
  app->add_option("--range", o->range, "OPTIM: side of the box that swaps stay in (3)");
  app->add_option("--num-swaps", o->num_swaps, "OPTIM: ranks exchanged at once")
      ->capture_default_str();
  app->add_option("--checkpoint", o->checkpoint, "Keep the state here, every 5 s and at the end");
  app->add_option("--resume", o->resume, "Go on from such a file");
  app->add_option("--start", o->start, "Begin with this placement");
  app->add_option("--exchange", o->exchange, "Share the best with other searches by this folder");
  app->add_option("--island", o->island, "Our number among them; the first's result is that of all")
      ->envname("SEKISHO_TASK")
      ->check(CLI::Range(0, 1 << 20));
  app->add_option("--jobs", o->jobs, "Search by so many tasks of one job at -r")
      ->check(CLI::Range(1, 4096));
  app->add_option("-r,--resource", o->resource, "Where: a site's name or contact");
  app->add_option("--report", o->report, "Write a picture of the result (.svg or .html)");
  app->add_flag("--json", o->is_json, "Print the result as JSON");
  app->add_flag("--quiet", o->is_quiet, "No progress line");
  app->callback([o, &exit_code] { exit_code = SolveRankmap(*o, std::cout, std::cerr); });
}

void AddEval(CLI::App* rankmap, int& exit_code) {
  const auto o = std::make_shared<EvalOptions>();
  CLI::App* app = rankmap->add_subcommand("eval", "Say what a placement costs");
  AddProblem(app, o->network, o->pattern);
  app->get_option("--network")->required();
  app->get_option("--pattern")->required();
  app->add_option("--placement", o->placement, "Placement file (also -pl)")->required();
  app->add_flag("--json", o->is_json, "Print as JSON");
  app->callback([o, &exit_code] { exit_code = ExitCode(Eval(*o)); });
}

void AddBound(CLI::App* rankmap, int& exit_code) {
  const auto o = std::make_shared<EvalOptions>();
  const auto qap = std::make_shared<std::string>();
  CLI::App* app = rankmap->add_subcommand("bound", "Lower bounds that every placement obeys");
  AddProblem(app, o->network, o->pattern);
  app->add_option("--qap", *qap, "Gilmore-Lawler bound of a QAPLIB .dat");
  app->add_flag("--json", o->is_json, "Print as JSON");
  app->callback([o, qap, &exit_code] { exit_code = ExitCode(Bound(*o, *qap)); });
}

void AddGen(CLI::App* rankmap, int& exit_code) {
  const auto o = std::make_shared<GenOptions>();
  CLI::App* app = rankmap->add_subcommand("gen", "Make a pattern to try things on");
  app->add_option("NAME", o->name,
                  "bruck, recursive, stencil, halo, fftrows, alltoall, random, lu, bt, mg or cg")
      ->required();
  app->add_option("--ranks", o->generate.ranks,
                  "Number of ranks (bruck, recursive, alltoall, random)");
  app->add_option("--grid", o->grid, "Ranks as a grid, 64x64 (the others)");
  app->add_option("--bytes", o->generate.bytes, "Size of a message or block")
      ->capture_default_str();
  app->add_option("--degree", o->generate.degree, "random: messages a rank")->capture_default_str();
  app->add_option("--seed", o->generate.seed, "random: seed")->capture_default_str();
  app->add_option("--permute", o->generate.permute, "Relabel the ranks with this seed");
  app->add_flag("--corners", o->generate.has_corners, "stencil: diagonal neighbours too");
  app->add_flag("--open", o->is_open, "stencil: not periodic");
  app->add_option("-o,--output", o->output, "File (standard output)");
  app->callback([o, &exit_code] { exit_code = ExitCode(Gen(*o)); });
}

void AddConvert(CLI::App* rankmap, int& exit_code) {
  const auto o = std::make_shared<ConvertOptions>();
  CLI::App* app = rankmap->add_subcommand(
      "convert", "Write a placement for a launcher, or a pattern for another program");
  AddProblem(app, o->network, o->pattern);
  app->add_option("--placement", o->placement, "Placement file (also -pl)");
  app->add_option(
         "--to", o->to,
         "Placement: rankfile, machinefile, slurm, cray, rmatt; pattern: pattern, scotch, metis")
      ->required();
  app->add_option("--hosts", o->hosts, "Host names by node, one a line (node0, node1, ...)");
  app->add_option("-o,--output", o->output, "File (standard output)");
  app->callback([o, &exit_code] { exit_code = ExitCode(Convert(*o)); });
}

}  // namespace

void AddRankmapVerb(CLI::App& app, int& exit_code) {
  CLI::App* rankmap =
      app.add_subcommand("rankmap", "Place ranks on nodes so that they talk cheaply");
  rankmap->require_subcommand(1);
  AddSolve(rankmap, exit_code);
  AddEval(rankmap, exit_code);
  AddBound(rankmap, exit_code);
  AddConvert(rankmap, exit_code);
  AddGen(rankmap, exit_code);
}

}  // namespace sekisho::client
