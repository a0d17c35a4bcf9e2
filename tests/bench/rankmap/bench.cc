// SPDX-License-Identifier: Apache-2.0
// rankmap_bench torus|qaplib|time|solve|checkpoint: tables and figures; rankmap_bench rankmap VERB ...: the verb without the rest
// of the client.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "client/rankmap/verb_rankmap.h"
#include "tests/bench/rankmap/tables.h"

int main(int argc, char** argv) {
  CLI::App app("rankmap");
  app.require_subcommand(1);
  int exit_code = 0;
  sekisho::client::AddRankmapVerb(app, exit_code);
  CLI::App* qaplib = app.add_subcommand("qaplib", "Gaps on QAPLIB instances");
  std::string directory;
  double seconds = 1;
  int every = 1;
  uint64_t seed = 1;
  bool is_quick = false;
  qaplib->add_option("DIRECTORY", directory, "With *.dat and SOURCES.md")->required();
  qaplib->add_option("--seconds", seconds, "CPU time of each")->capture_default_str();
  qaplib->add_option("--every", every, "Take every n-th instance")->capture_default_str();
  qaplib->add_option("--seed", seed, "Seed")->capture_default_str();
  using sekisho::rankmap::QapMethod;
  const std::map<std::string, QapMethod> methods = {{"auto", QapMethod::kAuto},
                                                    {"grasp", QapMethod::kGrasp},
                                                    {"tabu", QapMethod::kTabu},
                                                    {"iterated", QapMethod::kIterated}};
  std::string method = "auto";
  qaplib->add_option("--method", method, "auto, grasp (paper 000), tabu, iterated")
      ->check(CLI::IsMember(methods))
      ->capture_default_str();
  qaplib->callback([&] {
    sekisho::bench::QaplibTable(directory, seconds, is_quick ? 8 : every, seed, methods.at(method));
  });
  CLI::App* torus = app.add_subcommand("torus", "Placements on tori");
  int64_t permute = -1;
  torus->add_option("--seconds", seconds, "CPU time of each (60)");
  torus->add_option("--permute", permute, "Relabel the ranks with this seed");
  torus->add_option("--seed", seed, "Seed");
  torus->add_flag("--quick", is_quick, "3 s each");
  torus->callback([&] {
    const bool is_given = torus->count("--seconds") > 0;
    sekisho::bench::TorusTable(is_given ? seconds : is_quick ? 3 : 60, permute, seed);
  });
  CLI::App* time = app.add_subcommand("time", "Simulated seconds: all at once, then step by step");
  std::vector<std::string> files;
  time->add_option("FILES", files, "NETWORK PATTERN PLACEMENT")->expected(3)->required();
  time->callback([&] { exit_code = sekisho::bench::PrintTimes(files[0], files[1], files[2]); });
  CLI::App* solve = app.add_subcommand("solve", "A placement by so many seconds of processor");
  sekisho::bench::SearchOptions search;
  solve->add_option("NETWORK", search.network)->required();
  solve->add_option("PATTERN", search.pattern)->required();
  solve->add_option("OUTPUT", search.output)->required();
  solve->add_option("OBJECTIVE", search.objective)->required();
  solve->add_option("SECONDS", search.seconds)->required();
  solve->add_option("TARGET", search.target, "Ends the search");
  solve->callback([&] { exit_code = sekisho::bench::SolveByCpu(search); });
  CLI::App* checkpoint = app.add_subcommand("checkpoint", "Milliseconds of checkpoints: middle, most");
  checkpoint->add_option("NETWORK", search.network)->required();
  checkpoint->add_option("PATTERN", search.pattern)->required();
  checkpoint->callback([&] { exit_code = sekisho::bench::TimeCheckpoints(search.network, search.pattern); });
  qaplib->add_flag("--quick", is_quick, "Every 8th instance");
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 takes them backwards
    std::string word = argv[i];
    for (const auto& [from, to] : sekisho::client::kRankmapSpellings) {
      word = word == from ? to : word;
    }
    words.push_back(std::move(word));
  }
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 64;
  }
  return exit_code;
}
