// SPDX-License-Identifier: Apache-2.0
// The lab's wide-area network.  docs/operations/lab.md
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deploy/wan/device.h"
#include "deploy/wan/emulator.h"
#include "deploy/wan/namespaces.h"
#include "deploy/wan/network.h"
#include "deploy/wan/options.h"
#include "deploy/wan/pairs_file.h"
#include "deploy/wan/tree_file.h"

namespace sekisho::wan {
namespace {

bool ReadFile(const std::string& path, std::string& text, std::string& error) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    error = path + ": " + strerror(errno);
    return false;
  }
  text.assign(std::istreambuf_iterator<char>(file), {});
  return true;
}

std::optional<Graph> ReadGraph(const Options& options, std::string& error) {
  std::string text;
  if (!ReadFile(options.file, text, error)) return std::nullopt;
  std::optional<Graph> graph = options.is_tree ? ParseTree(text, options.file, error)
                                               : ParsePairs(text, options.file, error);
  if (!graph) return std::nullopt;
  if (options.is_tree) {
    if (!options.hosts.empty() && (!ReadFile(options.hosts, text, error) ||
                                   !ParseHosts(text, options.hosts, *graph, error))) {
      return std::nullopt;
    }
    Prefix base;
    ParsePrefix(options.base, base);
    if (!NumberHosts(*graph, base, error)) return std::nullopt;
  }
  for (Edge& edge : graph->edges) edge.settings = Dilated(edge.settings, options.dilate);
  return graph;
}

// From here on the process ends with its parent.  False if that has gone already.
bool EndWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  return getppid() == parent;
}

// A signal is something to read; whatever is half-made is taken away on the way out.
int BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  return signalfd(-1, &set, SFD_CLOEXEC);
}

// Best effort: what is refused shows when a device is opened.
void AllowDescriptors(size_t count) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return;
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, count);
  limit.rlim_max = std::max(limit.rlim_max, limit.rlim_cur);
  setrlimit(RLIMIT_NOFILE, &limit);
}

// The devices of all hosts, and in tree mode their namespaces.
bool MakeDevices(const Graph& graph, const Options& options, Namespaces& namespaces,
                 std::vector<int>& devices, std::string& error) {
  for (size_t i = 0; i < graph.hosts.size(); ++i) {
    const Host& host = graph.hosts[i];
    if (options.is_tree) {
      if (!namespaces.Make(i, error)) return false;
      if (!BringUpLoopback(error)) return false;
    } else if (!namespaces.Enter(host.netns, error)) {
      return false;
    }
    const int device = OpenDevice(host.device, host.address, options.mtu, error);
    if (device < 0) {
      error = "host " + host.name + ": " + error;
      return false;
    }
    if (options.is_tree) LeaveDevice(device);
    devices.push_back(device);
  }
  return namespaces.Enter("", error);
}

void Prioritise(const Options& options) {
  prctl(PR_SET_TIMERSLACK, 1);
  if (options.cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(options.cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0) {
      fprintf(stderr, "sekisho-lab-wan: --cpu %d: %s; going on without\n", options.cpu,
              strerror(errno));
    }
  }
  if (options.fifo > 0) {
    sched_param parameters = {};
    parameters.sched_priority = options.fifo;
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) < 0) {
      fprintf(stderr, "sekisho-lab-wan: --fifo %d: %s; going on without\n", options.fifo,
              strerror(errno));
    }
  }
}

void SayReady(const Options& options, const Graph& graph, const Namespaces& namespaces) {
  if (options.ready_fd < 0) return;
  std::string text;
  for (size_t i = 0; i < graph.hosts.size(); ++i) {
    const Host& host = graph.hosts[i];
    const std::string address = host.address.substr(0, host.address.find('/'));
    text += "host " + host.name + " " + (address.empty() ? "-" : address) + " ";
    text += (options.is_tree ? namespaces.path(i) : host.netns.empty() ? "-" : host.netns) + "\n";
  }
  text += "ready\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(options.ready_fd, text.data() + at, text.size() - at);
    if (written <= 0) break;
    at += written;
  }
  close(options.ready_fd);
}

bool Main(const Options& options, pid_t parent, std::string& error) {
  std::optional<Graph> graph = ReadGraph(options, error);
  if (!graph) return false;
  NetworkOptions network_options;
  network_options.seed = options.seed;
  network_options.compensate_ns = std::llround(options.compensate_us * 1000);
  network_options.packet_bytes_max = options.mtu;
  network_options.denied = options.deny_inbound;
  const Graph hosts = *graph;
  std::unique_ptr<Network> network = Network::Make(*std::move(graph), network_options, error);
  if (network == nullptr) return false;

  std::vector<std::string> names;
  if (options.is_tree) {
    for (const Host& host : hosts.hosts) names.push_back(host.name);
  }
  const int signals = BlockSignals();
  Namespaces namespaces(options.prefix, names);
  if (!EndWithParent(parent)) return true;
  AllowDescriptors(hosts.hosts.size() + 64);
  if (!namespaces.Begin(error)) return false;
  Prioritise(options);  // its guard has been born before, and may run anywhere
  std::vector<int> devices;
  if (!MakeDevices(hosts, options, namespaces, devices, error)) return false;

  Emulator emulator(std::move(network), std::move(devices), options.is_busy);
  if (!options.control.empty() && !emulator.Listen(options.control, error)) return false;
  SayReady(options, hosts, namespaces);
  emulator.Run(signals);
  return true;
}

}  // namespace
}  // namespace sekisho::wan

int main(int argc, char** argv) {
  const pid_t parent = getppid();
  std::string error;
  const auto options = sekisho::wan::ParseOptions({argv + 1, argv + argc}, error);
  if (options && options->wants_help) {
    fputs(sekisho::wan::kUsage, stdout);
    return 0;
  }
  if (!options || !sekisho::wan::Main(*options, parent, error)) {
    fprintf(stderr, "sekisho-lab-wan: %s\n", error.c_str());
    return options ? 1 : 64;
  }
  return 0;
}
