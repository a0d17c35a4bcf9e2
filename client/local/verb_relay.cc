// SPDX-License-Identifier: Apache-2.0
#include "client/local/verb_relay.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "client/local/relay_report.h"
#include "client/site/sites.h"
#include "client/verbs/verbs.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

constexpr int kExitFailed = 125;
constexpr int kExitUsage = 64;

struct RelayOptions {
  std::string server;
  std::string scope = "job";
  std::vector<std::string> ports;
  bool is_advertising = false;
  bool takes_loopback = false;
  bool is_encrypting = false;
  std::string local;
  std::string target;
  bool is_json = false;
  double interval_s = 2;
  int rounds = 0;
};

// Beside this program (build folder), or where it is installed.
std::string PorterPath() {
  std::array<char, 4096> buffer{};
  const ssize_t length = readlink("/proc/self/exe", buffer.data(), buffer.size() - 1);
  std::string folder(buffer.data(), length > 0 ? static_cast<size_t>(length) : 0);
  folder.erase(std::min(folder.rfind('/'), folder.size()));
  const std::string beside = folder + "/sekisho-nxporter";
  return access(beside.c_str(), X_OK) == 0 ? beside
                                           : folder + "/../libexec/sekisho/sekisho-nxporter";
}

// Whom an encrypted stream's far end is believed to be a task of the user's own job by.
void TellSpeakers() {
  const auto sites = Sites::Load();
  if (!sites.ok()) {
    fmt::print(stderr, "sekisho: warning: {}\n", Message(sites.status()));
    return;
  }
  std::string lines;
  for (const auto& [site, subject] : sites->speakers()) {
    lines += site + " " + subject + "\n";
  }
  setenv("NXPROXY_SPEAKERS", lines.c_str(), 1);
}

std::vector<std::string> PorterWords(const RelayOptions& options,
                                     const std::vector<std::string>& words) {
  std::vector<std::string> all = {PorterPath()};
  all.insert(all.end(), words.begin(), words.end());
  if (!options.server.empty()) {
    all.insert(all.end(), {"--server", options.server});
  }
  if (options.is_encrypting) {
    all.emplace_back("--encrypt");
  }
  return all;
}

// Becomes the porter; returns only if that fails.
int Become(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  fmt::print(stderr, "sekisho: {}: {}\n", words[0], std::strerror(errno));
  return kExitFailed;
}

// What the porter prints; its exit code.
int Capture(const std::vector<std::string>& words, std::string& out) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) {
    return kExitFailed;
  }
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    _exit(Become(words));
  }
  close(ends[1]);
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = read(ends[0], buffer.data(), buffer.size())) > 0) {
    out.append(buffer.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailed;
}

int ExecVerb(const RelayOptions& options, const Invocation& invocation) {
  if (invocation.command.empty()) {
    fmt::print(stderr, "sekisho relay exec: expected a command behind --\n");
    return kExitUsage;
  }
  std::vector<std::string> words = PorterWords(options, {"exec", "--scope", options.scope});
  for (const std::string& port : options.ports) {
    words.insert(words.end(), {"--port", port});
  }
  if (options.is_advertising) {
    words.emplace_back("--advertise");
  }
  if (options.takes_loopback) {
    words.emplace_back("--loopback");
  }
  words.emplace_back("--");
  words.insert(words.end(), invocation.command.begin(), invocation.command.end());
  return Become(words);
}

int ListVerb(const RelayOptions& options) {
  std::string report;
  const int code = Capture(PorterWords(options, {"stats"}), report);
  if (code != 0) {
    return code;
  }
  std::string error;
  const std::string table = RelayTable(report, "", 0, error);
  if (!error.empty()) {
    fmt::print(stderr, "sekisho relay: {}\n", error);
    return kExitFailed;
  }
  if (options.is_json) {
    fmt::print("{}\n", JoinReports(report));
  } else {
    fmt::print("{}", table);
  }
  return 0;
}

int TopVerb(const RelayOptions& options) {
  std::string before;
  auto since = std::chrono::steady_clock::now();
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  const int rounds = options.rounds > 0 ? options.rounds : (is_terminal ? 1 << 30 : 1);
  for (int round = 0; round <= rounds; ++round) {
    std::string report;
    if (const int code = Capture(PorterWords(options, {"stats"}), report); code != 0) {
      return code;
    }
    const auto now = std::chrono::steady_clock::now();
    std::string error;
    const std::string table =
        RelayTable(report, before, std::chrono::duration<double>(now - since).count(), error);
    if (!error.empty()) {
      fmt::print(stderr, "sekisho relay: {}\n", error);
      return kExitFailed;
    }
    if (round > 0) {
      fmt::print("{}{}", is_terminal ? "\033[H\033[2J" : "", table);
      std::fflush(stdout);
    }
    before = report;
    since = now;
    if (round < rounds) {
      std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
    }
  }
  return 0;
}

void AddServer(CLI::App* verb, RelayOptions& options) {
  verb->add_option("--server", options.server,
                   "The relay, HOST:PORT ($NXPROXY_SERVER, /etc/sekisho/nxproxy-server)");
}

void AddEncrypt(CLI::App* verb, RelayOptions& options) {
  verb->add_flag("--encrypt", options.is_encrypting,
                 "End to end, so that the relay cannot read or change a stream ($NXPROXY_ENCRYPT=1)");
}

void AddExec(CLI::App* relay, Invocation& invocation) {
  auto options = std::make_shared<RelayOptions>();
  CLI::App* verb = relay->add_subcommand("exec",
                                         "Run a command whose ports are reachable at the relay: "
                                         "sekisho relay exec [OPTIONS] -- COMMAND...");
  verb->add_option("--scope", options->scope,
                   "Who may connect: job (its own job or user) or public (anyone)")
      ->check(CLI::IsMember({"job", "public"}))
      ->capture_default_str();
  verb->add_option(
          "--port", options->ports,
          "Port at the relay of the command's first listener, or LOCAL:PORT of the one at LOCAL")
      ->expected(1)
      ->take_all();
  verb->add_flag("--advertise", options->is_advertising,
                 "Tell the command its public address (for peers that do not run under the relay)");
  verb->add_flag("--loopback", options->takes_loopback, "Listeners on 127.0.0.1 too");
  AddEncrypt(verb, *options);
  AddServer(verb, *options);
  verb->callback([options, &invocation] { invocation.exit_code = ExecVerb(*options, invocation); });
}

}  // namespace

void AddRelayVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* relay =
      app.add_subcommand("relay", "Reach, and be reached, through the firewall's relay");
  relay->require_subcommand(1);
  AddExec(relay, invocation);

  auto forward = std::make_shared<RelayOptions>();
  CLI::App* verb = relay->add_subcommand("forward", "A local port that leads to a job's service");
  verb->add_option("LOCALPORT", forward->local, "PORT of 127.0.0.1, or ADDRESS:PORT")->required();
  verb->add_option("TARGET", forward->target, "JOB:PORT, or an endpoint's HOST:PORT")->required();
  AddEncrypt(verb, *forward);
  AddServer(verb, *forward);
  verb->callback([forward, &invocation] {
    TellSpeakers();
    invocation.exit_code =
        Become(PorterWords(*forward, {"forward", forward->local, forward->target}));
  });

  auto connect = std::make_shared<RelayOptions>();
  verb = relay->add_subcommand("connect",
                               "Standard input to an endpoint, its answer to standard output");
  verb->add_option("TARGET", connect->target, "JOB:PORT, or an endpoint's HOST:PORT")->required();
  AddEncrypt(verb, *connect);
  AddServer(verb, *connect);
  verb->callback([connect, &invocation] {
    TellSpeakers();
    invocation.exit_code = Become(PorterWords(*connect, {"connect", connect->target}));
  });

  auto list = std::make_shared<RelayOptions>();
  verb = relay->add_subcommand("list",
                               "Your endpoints at the relay (an administrator's: everybody's)");
  verb->add_flag("--json", list->is_json, "Print the relay's report as it is");
  AddServer(verb, *list);
  verb->callback([list, &invocation] { invocation.exit_code = ListVerb(*list); });

  auto top = std::make_shared<RelayOptions>();
  verb = relay->add_subcommand("top", "The same, the busiest first, again and again");
  verb->add_option("--interval", top->interval_s, "Seconds")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  verb->add_option("--rounds", top->rounds, "Stop after so many (without a terminal: 1)");
  AddServer(verb, *top);
  verb->callback([top, &invocation] { invocation.exit_code = TopVerb(*top); });
}

}  // namespace sekisho::client
