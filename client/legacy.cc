// SPDX-License-Identifier: Apache-2.0
#include "client/legacy.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "client/rankmap/verb_rankmap.h"

namespace sekisho::client {
namespace {

using Table = std::map<std::string, std::string>;

// Of globusrun and globus-job-run; single letters are options of their own.
const Table& RunWords() {
  static const Table words = {
      {"-help", "--help"},
      {"-usage", "--help"},
      {"-version", "--version"},
      {"-versions", "--version"},
      {"-parse", "--parse"},
      {"-file", "--file"},
      {"-no-interrupt", "--no-interrupt"},
      {"-resource", "--resource"},
      {"-j", "--jobmanager-version"},
      {"-job-manager-version", "--jobmanager-version"},
      {"-jobmanager-version", "--jobmanager-version"},
      {"-kill", "--kill"},
      {"-full-proxy", "--full-proxy"},
      {"-refresh-proxy", "--refresh-proxy"},
      {"-status", "--status"},
      {"-stop-manager", "--stop-manager"},
      {"-quiet", "--quiet"},
      {"-output-enable", "--output-enable"},
      {"-server", "--server"},
      {"-write-allow", "--write-allow"},
      {"-batch", "--batch"},
      {"-fast-batch", "--fast-batch"},
      {"-dryrun", "--dry-run"},
      {"-authenticate-only", "--authenticate-only"},
      {"-np", "--count"},
      {"-count", "--count"},
      {"-host-count", "--host-count"},
      {"-dumprsl", "--dump-rsl"},
      {"-verify", "--dry-run"},
  };
  return words;
}

// Of MPICH-G2's mpirun.  Its program's own words begin behind the first that is no option.
const Table& MpirunWords() {
  static const Table words = {
      {"-np", "--np"},           {"-machinefile", "--machinefile"}, {"-dumprsl", "--dump-rsl"},
      {"-export", "--export"},   {"-help", "--help"},               {"-tag-output", "--tag-output"},
      {"-mpi", "--mpi"},         {"-batch", "--batch"},             {"-verbose", "--verbose"},
      {"-hostfile", "--machinefile"}, {"--hostfile", "--machinefile"},
      {"-globusrsl", "--globusrsl"}, {"-rankmap", "--rankmap"},
  };
  return words;
}
constexpr std::string_view kMpirunValues[] = {
    "--np",           "-n",      "--machinefile",  "-x",           "--export",   "--mpi",   "--directory", "--max-wall-time",
    "--ready-within", "--where", "--per-site-exe", "--start-type", "--stage-in", "--build", "--sources",   "--profile",
    "--profile-seconds", "--profile-iterations", "--rankmap", "--globusrsl"};

// The rest of the line is the program once it begins.
void SplitMpirun(const std::vector<std::string>& arguments, CommandLine& line) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    const bool is_mark = arguments[i] == "--";
    if (is_mark || !arguments[i].starts_with("-")) {
      line.has_command = true;
      line.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + (is_mark ? 1 : 0), arguments.end());
      return;
    }
    const auto known = MpirunWords().find(arguments[i]);
    line.arguments.push_back(known == MpirunWords().end() ? arguments[i] : known->second);
    const bool has_value = std::find(std::begin(kMpirunValues), std::end(kMpirunValues), line.arguments.back()) !=
                           std::end(kMpirunValues);
    if (has_value && i + 1 < arguments.size()) {
      line.arguments.push_back(arguments[++i]);
    }
  }
}

// Of grid-proxy-init, grid-proxy-info and grid-proxy-destroy.
const Table& ProxyWords() {
  static const Table words = {
      {"-help", "--help"},
      {"-valid", "--valid"},
      {"-hours", "--hours"},
      {"-bits", "--bits"},
      {"-out", "--out"},
      {"-cert", "--cert"},
      {"-key", "--key"},
      {"-limited", "--limited"},
      {"-independent", "--independent"},
      {"-path-length", "--path-length"},
      {"-pwstdin", "--pwstdin"},
      {"-file", "--file"},
      {"-exists", "--exists"},
      {"-subject", "--subject"},
      {"-issuer", "--issuer"},
      {"-identity", "--identity"},
      {"-type", "--type"},
      {"-timeleft", "--timeleft"},
      {"-strength", "--strength"},
      {"-path", "--path"},
      {"-all", "--all"},
      {"-q", "--quiet"},
      {"-quiet", "--quiet"},
      {"-debug", "--debug"},
      {"-dryrun", "--dry-run"},
      {"-default", "--default"},
      {"-rfc", "--rfc"},
      {"-verify", "--verify"},
      {"-certdir", "--certdir"},
  };
  return words;
}

const Table& RankmapWords() {
  static const Table words(std::begin(kRankmapSpellings), std::end(kRankmapSpellings));
  return words;
}

// The spellings of a verb; null if it has none.
const Table* WordsOf(const std::string& verb) {
  if (verb == "proxy") {
    return &ProxyWords();
  }
  if (verb == "rankmap") {
    return &RankmapWords();
  }
  return verb == "run" || verb == "submit" || verb == "globusrun" ? &RunWords() : nullptr;
}

}  // namespace

CommandLine Rewrite(const std::string& program, const std::vector<std::string>& arguments) {
  CommandLine line;
  const std::string name = program.substr(program.rfind('/') + 1);
  if (name == "globusrun") {
    line.arguments.push_back("globusrun");
  }
  if (!arguments.empty() && arguments.front() == "mpirun") {
    line.arguments.push_back("mpirun");
    SplitMpirun(arguments, line);
    return line;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      line.has_command = true;
      line.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      break;
    }
    line.arguments.push_back(argument);
    const Table* words = WordsOf(line.arguments.front());
    if (words != nullptr) {
      if (const auto found = words->find(argument); found != words->end()) {
        line.arguments.back() = found->second;
      }
    }
  }
  return line;
}

}  // namespace sekisho::client
