// SPDX-License-Identifier: Apache-2.0
#include "client/local/verb_pm.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/local/pm_daemon.h"
#include "client/local/pm_top.h"
#include "client/local/verb_pm_ping.h"
#include "client/local/verb_pm_trace.h"
#include "client/verbs/verbs.h"
#include "transport/pm/wire.h"

namespace sekisho::client {
namespace {

struct PmOptions {
  std::string daemon;
  std::string job;
  std::string file;
  std::string address;
  int node = -1;
  double timeout_s = 5;
  bool is_json = false;
};

// The job, and its key file, open.  0 or an exit code.
int OpenPmJob(const PmOptions& options, pm::JobFile& job, int& key) {
  if (!ReadPmJob(options.job, job)) {
    return kPmUsage;
  }
  key = open(job.key_path.get(), O_RDONLY | O_CLOEXEC);
  return key < 0 ? PmFail(job.key_path.get(), errno) : 0;
}

// The same question for each node of the job that is on this host.
int AskNodes(const PmOptions& options, pm::Ask what, int file) {
  pm::JobFile job;
  int key = -1;
  if (const int code = OpenPmJob(options, job, key)) {
    return code;
  }
  int error = 0;
  const std::vector<int> nodes = PmNodesHere(options.daemon, job.context, options.node, key, error);
  if (error == 0 && nodes.empty()) {
    error = ENOENT;
  }
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < nodes.size() && error == 0; ++i) {
    pm::AskMessage ask;
    ask.ask = what;
    ask.config.context = job.context;
    ask.config.node = static_cast<pm::NodeId>(nodes[i]);
    ask.timeout_ms = static_cast<std::uint32_t>(options.timeout_s * 1000);
    const std::array<int, 2> fds = {key, file};
    std::string text;
    const pm::Nanos begin = pm::Wire::Now();
    const auto given = std::span(fds).first(file >= 0 ? 2 : 1);
    error = what == pm::Ask::kTop ? AskPmDaemonForAll(options.daemon, ask, given, text)
                                  : AskPmDaemon(options.daemon, ask, given, text);
    const double took_us = static_cast<double>(pm::Wire::Now() - begin) / 1000;
    if (error != 0) {
      break;
    }
    if (what == pm::Ask::kTop) {
      all.push_back(TopAsJson(text));
      if (!options.is_json) {
        fmt::print("{}", TopAsText(all.back()));
      }
    } else if (options.is_json) {
      all.push_back(
          {{"context", job.context}, {"node", nodes[i]}, {"took_us", took_us}, {"text", text}});
    } else {
      fmt::print("{}", text.empty() ? fmt::format("context {} node {}: done in {:.0f} us\n",
                                                  job.context, nodes[i], took_us)
                                    : text);
    }
  }
  close(key);
  if (options.is_json && error == 0) {
    fmt::print("{}\n", all.dump(2));
  }
  return error == 0 ? 0 : PmRefused(options.job, what, error);
}

// A file is of one node: which, if several are here?
int CheckOneNode(const PmOptions& options) {
  pm::JobFile job;
  int key = -1;
  if (const int code = OpenPmJob(options, job, key)) {
    return code;
  }
  int error = 0;
  const std::vector<int> nodes = PmNodesHere(options.daemon, job.context, options.node, key, error);
  close(key);
  if (nodes.size() > 1) {
    fmt::print(
        stderr,
        "sekisho pm: {}: nodes {} are on this host: --node says which to save, a file each\n",
        options.job, fmt::join(nodes, ", "));
    return kPmUsage;
  }
  return error == 0 ? 0 : PmRefused(options.job, pm::Ask::kSave, error);
}

// It holds the job's key.  What was saved before stays until this one is whole.
int SaveVerb(const PmOptions& options) {
  if (const int code = CheckOneNode(options)) {
    return code;
  }
  std::string draft = options.file + ".XXXXXX";
  const int file = mkostemp(draft.data(), O_CLOEXEC);  // mode 0600
  if (file < 0) {
    return PmFail(options.file, errno);
  }
  int code = AskNodes(options, pm::Ask::kSave, file);
  if (code == 0 && (fsync(file) != 0 || std::rename(draft.c_str(), options.file.c_str()) != 0)) {
    code = PmFail(options.file, errno);
  }
  if (code != 0) {
    unlink(draft.c_str());
  }
  close(file);
  return code;
}

int RestoreVerb(const PmOptions& options) {
  pm::JobFile job;
  if (!ReadPmJob(options.job, job)) {
    return kPmUsage;
  }
  pm::AskMessage ask;
  ask.ask = pm::Ask::kRestore;
  if (!options.address.empty() && pm::ParseAddress(options.address.c_str(), ask.own)) {
    fmt::print(stderr, "sekisho pm: {} is no ADDRESS:PORT\n", options.address);
    return kPmUsage;
  }
  const int key = open(job.key_path.get(), O_RDONLY | O_CLOEXEC);
  const int file = open(options.file.c_str(), O_RDONLY | O_CLOEXEC);
  if (key < 0 || file < 0) {
    const int code = PmFail(key < 0 ? job.key_path.get() : options.file, errno);
    close(key);
    return code;
  }
  const std::array<int, 2> fds = {key, file};
  std::string text;
  const int error = AskPmDaemon(options.daemon, ask, fds, text);
  close(key);
  close(file);
  return error == 0 ? 0 : PmRefused(options.file, ask.ask, error);
}

// Becomes the benchmark: beside this program (build folder), or where it is installed.
int BenchVerb(const std::vector<std::string>& words) {
  std::array<char, 4096> buffer{};
  const ssize_t length = readlink("/proc/self/exe", buffer.data(), buffer.size() - 1);
  std::string folder(buffer.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  folder.erase(std::min(folder.rfind('/'), folder.size()));
  std::string path = folder + "/sekisho-pm-bench";
  if (access(path.c_str(), X_OK) != 0) {
    path = folder + "/../libexec/sekisho/sekisho-pm-bench";
  }
  std::vector<char*> arguments = {path.data()};
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  execv(path.c_str(), arguments.data());
  return PmFail(path, errno);
}

struct NodeVerb {
  const char* name;
  pm::Ask ask;
  const char* what;
};

constexpr std::array<NodeVerb, 5> kNodeVerbs = {{
    {"top", pm::Ask::kTop, "Who drives, round trips, what was sent twice and why"},
    {"metrics", pm::Ask::kMetrics, "All counters, for Prometheus: every drop by name"},
    {"stop", pm::Ask::kStop, "The whole job, on all hosts; done when nothing is on its way"},
    {"go", pm::Ask::kGo, "The whole job goes on after stop or restore"},
    {"drop", pm::Ask::kDrop, "Forget a saved context whose program is dead; no peer is told"},
}};

CLI::App* Add(CLI::App* pm, const char* name, const char* what, PmOptions& options) {
  CLI::App* verb = pm->add_subcommand(name, what);
  verb->add_option("--daemon", options.daemon, "Socket of sekisho-pmd (else PM_DAEMON)");
  verb->add_flag("--json", options.is_json, "For machines");
  return verb;
}

CLI::App* AddJob(CLI::App* verb, PmOptions& options) {
  verb->add_option("JOB", options.job, "The job file")->required();
  return verb;
}

}  // namespace

void AddPmVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* pm =
      app.add_subcommand("pm", "Reliable messages on UDP: contexts of this host's sekisho-pmd");
  pm->require_subcommand(1);
  for (const NodeVerb& node_verb : kNodeVerbs) {
    auto options = std::make_shared<PmOptions>();
    CLI::App* verb = AddJob(Add(pm, node_verb.name, node_verb.what, *options), *options);
    verb->add_option("--node", options->node, "Only this node (else all of the job on this host)");
    verb->add_option("--timeout", options->timeout_s, "Seconds")->capture_default_str();
    verb->callback([options, &invocation, ask = node_verb.ask] {
      invocation.exit_code = AskNodes(*options, ask, -1);
    });
  }

  auto list = std::make_shared<PmOptions>();
  Add(pm, "list", "The contexts of this host", *list)->callback([list, &invocation] {
    std::string text;
    const int error = AskPmDaemonForAll(list->daemon, {}, {}, text);
    if (error == 0) {
      fmt::print("{}", list->is_json ? ListAsJson(text).dump(2) + "\n" : text);
    }
    invocation.exit_code = error == 0 ? 0 : PmRefused("", pm::Ask::kList, error);
  });

  auto save = std::make_shared<PmOptions>();
  CLI::App* verb =
      AddJob(Add(pm, "save", "A stopped context to a file (which holds the key)", *save), *save);
  verb->add_option("FILE", save->file, "Where to")->required();
  verb->add_option("--node", save->node, "Which node, if several of the job are on this host");
  verb->callback([save, &invocation] { invocation.exit_code = SaveVerb(*save); });

  auto restore = std::make_shared<PmOptions>();
  verb = AddJob(Add(pm, "restore", "A saved context, into the stopped one or a new one", *restore),
                *restore);
  verb->add_option("FILE", restore->file, "What save wrote")->required();
  verb->add_option("--address", restore->address, "ADDRESS:PORT if it is not the old one");
  verb->callback([restore, &invocation] { invocation.exit_code = RestoreVerb(*restore); });

  AddPmPingVerb(*pm, invocation);
  AddPmTraceVerb(*pm, invocation);

  verb = pm->add_subcommand("bench", "PM against TCP on this host");
  verb->set_help_flag();  // its own answer
  verb->prefix_command();
  verb->callback([verb, &invocation] { invocation.exit_code = BenchVerb(verb->remaining()); });
}

}  // namespace sekisho::client
