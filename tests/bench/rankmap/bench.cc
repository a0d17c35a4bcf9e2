// SPDX-License-Identifier: Apache-2.0
// rankmap_bench rankmap VERB ...: the rankmap verb by itself, without the rest of the client.
#include <cstring>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "client/verb_rankmap.h"
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
  qaplib->add_option("DIRECTORY", directory, "With *.dat and SOURCES.md")->required();
  qaplib->add_option("--seconds", seconds, "CPU time of each")->capture_default_str();
  qaplib->add_option("--every", every, "Take every n-th instance")->capture_default_str();
  qaplib->add_option("--seed", seed, "Seed")->capture_default_str();
  qaplib->callback([&] { sekisho::bench::QaplibTable(directory, seconds, every, seed); });
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
