// SPDX-License-Identifier: Apache-2.0
// See options.h.
#include "deploy/wan/options.h"

#include <type_traits>

#include "deploy/wan/graph.h"
#include "deploy/wan/words.h"

namespace sekisho::wan {

const char* const kUsage =
    R"(usage: sekisho-lab-wan pairs FILE [OPTION...]
       sekisho-lab-wan tree FILE --prefix P [OPTION...]

Carries packets between TUN devices as a network of links would: delay, rate, queue, loss.  Ends on SIGTERM,
on SIGINT, or when its parent ends, and takes its devices and namespaces away.  docs/operations/lab.md

pairs: sites or hosts linked pair by pair; FILE has lines
    node NAME device=NAME prefix=ADDRESS/LENGTH[,...] [netns=PATH] [address=ADDRESS/LENGTH]
    link FROM TO [delay_us=N] [rate_mbps=N] [loss=N] [queue_kib=N]

tree: hosts on a tree of switches, each in a network namespace that is made, and bound under /run/netns;
FILE has lines
    u v LATENCY_UV_US LATENCY_VU_US MBPS [LOSS]
  --prefix P             the namespaces are called P and the host's name
  --hosts FILE           lines NAME [CLUSTER] (default: every vertex with one cable)
  --base ADDRESS/LENGTH  addresses of the hosts: the first + 1, + 2, ... (default: 10.64.0.0/10)
  --deny-inbound NAMES   hosts and clusters, with commas between them, that admit only answers from outside

both:
  --seed N           of the losses (default: 1)
  --dilate F         everything F times slower: delays times F, rates divided by F
  --compensate-us N  deliver each packet N us early, for what the machine adds
  --mode M           sleep (default), or busy: never, for steadier times at the price of a processor
  --fifo N           real-time priority 1 to 99
  --cpu N            run on this processor only
  --mtu N            of the devices (default: 1500)
  --ready-fd N       says there what it has made, a line each: host NAME ADDRESS NETNS; then "ready"
  --control PATH     a socket: whoever connects gets all counters as JSON
)";

namespace {

// What was expected of the value, "?" if the option is not known, "" if all is well.
std::string Take(const std::string& key, const std::string& value, Options& options) {
  const auto number = [&](double min, double max, double& out) {
    const std::optional<double> read = Number(value, min, max);
    if (read) out = *read;
    return read.has_value();
  };
  const auto integer = [&](int64_t min, int64_t max, auto& out) {
    const std::optional<int64_t> read = Integer(value, min, max);
    if (read) out = static_cast<std::remove_reference_t<decltype(out)>>(*read);
    return read.has_value();
  };
  Prefix prefix;
  if (key == "--seed") return integer(0, INT64_MAX, options.seed) ? "" : "a number";
  if (key == "--dilate") return number(0.01, 10'000, options.dilate) ? "" : "0.01 to 10000";
  if (key == "--compensate-us") {
    return number(0, 10'000, options.compensate_us) ? "" : "0 to 10000";
  }
  if (key == "--mode") {
    options.is_busy = value == "busy";
    return value == "busy" || value == "sleep" ? "" : "sleep or busy";
  }
  if (key == "--fifo") return integer(1, 99, options.fifo) ? "" : "1 to 99";
  if (key == "--cpu") return integer(0, 1023, options.cpu) ? "" : "0 to 1023";
  if (key == "--mtu") return integer(68, 65'000, options.mtu) ? "" : "68 to 65000";
  if (key == "--ready-fd") return integer(0, 1 << 20, options.ready_fd) ? "" : "a descriptor";
  if (key == "--control") {
    options.control = value;
    return !value.empty() && value.size() < 108 ? "" : "a path of 1 to 107 characters";
  }
  if (!options.is_tree) return "?";
  if (key == "--prefix") {
    options.prefix = value;
    return IsName(value) ? "" : "letters, digits, - _ and .";
  }
  if (key == "--hosts") {
    options.hosts = value;
    return value.empty() ? "a file" : "";
  }
  if (key == "--base") {
    options.base = value;
    return ParsePrefix(value, prefix) ? "" : "ADDRESS/LENGTH";
  }
  if (key == "--deny-inbound") {
    options.deny_inbound = Split(value, ',');
    return value.empty() ? "names" : "";
  }
  return "?";
}

}  // namespace

std::optional<Options> ParseOptions(const std::vector<std::string>& words, std::string& error) {
  Options options;
  for (const std::string& word : words) options.wants_help |= word == "--help" || word == "-h";
  if (options.wants_help) return options;
  if (words.size() < 2 || (words[0] != "pairs" && words[0] != "tree")) {
    error = "expected 'pairs FILE' or 'tree FILE'; see --help";
    return std::nullopt;
  }
  options.is_tree = words[0] == "tree";
  options.file = words[1];
  for (size_t i = 2; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string key = words[i].substr(0, equals);
    if (equals == std::string::npos && i + 1 == words.size()) {
      error = key + ": a value is missing, or the option is not known; see --help";
      return std::nullopt;
    }
    const std::string value =
        equals == std::string::npos ? words[++i] : words[i].substr(equals + 1);
    const std::string expected = Take(key, value, options);
    if (expected == "?") {
      error = key + " is not known" + (options.is_tree ? "" : " to 'pairs'") + "; see --help";
      return std::nullopt;
    }
    if (!expected.empty()) {
      error = key + ": expected " + expected + ", got '" + value + "'";
      return std::nullopt;
    }
  }
  if (options.is_tree && options.prefix.empty()) {
    error = "--prefix is missing: what the namespaces of 'tree' are called";
    return std::nullopt;
  }
  return options;
}

}  // namespace sekisho::wan
