// SPDX-License-Identifier: Apache-2.0
// sekisho: the one command line.  Only ever dials out; docs/operations/cli.md.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "client/legacy.h"
#include "client/local/verb_pm.h"
#include "client/local/verb_proxy.h"
#include "client/local/verb_relay.h"
#include "client/local/verb_rsl.h"
#include "client/rankmap/verb_rankmap.h"
#include "client/site/exit_code.h"
#include "client/topology/verb_topology.h"
#include "client/verbs/verb_files.h"
#include "client/verbs/verb_refresh.h"
#include "client/verbs/verbs.h"
#include "common/version.h"

namespace sekisho::client {
namespace {

struct Verb {
  std::string_view name;
  void (*add)(CLI::App&, Invocation&);
};

constexpr Verb kVerbs[] = {
    {"run", AddRunVerb},
    {"mpirun", AddMpirunVerb},
    {"coalloc", AddCoallocVerb},
    {"submit", AddSubmitVerb},
    {"upload", AddUploadVerb},
    {"ls", AddListFilesVerb},
    {"get", AddGetVerb},
    {"put", AddPutVerb},
    {"status", AddStatusVerb},
    {"wait", AddWaitVerb},
    {"output", AddOutputVerb},
    {"cancel", AddCancelVerb},
    {"signal", AddSignalVerb},
    {"suspend", AddPlainSignalVerbs},
    {"list", AddListVerb},
    {"sites", AddSitesVerb},
    {"doctor", AddDoctorVerb},
    {"usage", AddUsageVerb},
    {"admin", AddAdminVerb},
    {"proxy",
     [](CLI::App& app, Invocation& invocation) {
       AddProxyVerb(app, invocation.exit_code);
       AddRefreshVerb(*app.get_subcommand("proxy"), invocation);
     }},
    {"rsl", [](CLI::App& app, Invocation& invocation) { AddRslVerb(app, invocation.exit_code); }},
    {"relay", AddRelayVerb},
    {"pm", AddPmVerb},
    {"rankmap", [](CLI::App& app, Invocation& invocation) { AddRankmapVerb(app, invocation.exit_code); }},
    {"topology", [](CLI::App& app, Invocation& invocation) { AddTopologyVerb(app, invocation.exit_code); }},
};

// Only the verb that is called, if there is one: to describe all takes as long as a handshake's signatures.
void AddVerbs(CLI::App& app, Invocation& invocation, const std::string& called) {
  const std::string_view wanted = called == "globusrun" ? "run" : std::string_view(called);  // added together
  const bool is_known = std::any_of(std::begin(kVerbs), std::end(kVerbs),
                                    [&](const Verb& verb) { return verb.name == wanted; });
  for (const Verb& verb : kVerbs) {
    if (!is_known || verb.name == wanted) {
      verb.add(app, invocation);
    }
  }
}

// CLI11 says of a verb that it does not know only that none was given.
std::string UsageText(const CLI::App* app, const CLI::Error& error) {
  std::string called = app->get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    called += " " + app->get_name();
  }
  std::string what = error.what();
  if (what == "A subcommand is required") {
    const std::vector<std::string> rest = app->remaining();
    what = rest.empty()                    ? "expected a verb, saw none"
           : rest.front().starts_with('-') ? fmt::format("what is '{}'?", rest.front())
                                           : fmt::format("expected a verb, saw '{}'", rest.front());
  }
  return fmt::format("sekisho: {}\n  -> {} --help says what there is\n", what, called);
}

int Main(int argc, char** argv) {
  const CommandLine line = Rewrite(argv[0], std::vector<std::string>(argv + 1, argv + argc));
  Invocation invocation;
  invocation.command = line.command;
  invocation.has_command = line.has_command;
  if (!line.arguments.empty()) {
    invocation.arguments.assign(line.arguments.begin() + 1, line.arguments.end());
  }

  CLI::App app("Run one job, also one MPI program, on clusters behind firewalls.", "sekisho");
  app.require_subcommand(1);
  app.failure_message(UsageText);
  app.set_version_flag("--version", std::string("sekisho ") + kVersion);
  app.footer("Exit codes: 0-124 the program's own, 128+n signal n, 125 failed, 126 refused, 127 unknown,\n"
             "130 cancelled, 64 usage.  Manual: docs/operations/cli.md");
  AddVerbs(app, invocation, line.arguments.empty() ? "" : line.arguments.front());

  std::vector<std::string> reversed(line.arguments.rbegin(), line.arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kExitUsage;
  }
  return invocation.exit_code;
}

}  // namespace
}  // namespace sekisho::client

int main(int argc, char** argv) {
  const int code = sekisho::client::Main(argc, argv);
  std::fflush(stdout);
  std::fflush(stderr);
  // Not through exit(): a thread may wait in read(0), and gRPC's farewell costs milliseconds.
  _exit(code);
}
