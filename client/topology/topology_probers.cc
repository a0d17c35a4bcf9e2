// SPDX-License-Identifier: Apache-2.0
#include "client/topology/topology_probers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "topology/errors.h"

namespace sekisho::client {
namespace {

constexpr std::chrono::seconds kEndPatience{3};
constexpr size_t kLongestLine = 4096;
constexpr rlim_t kOtherFiles = 64;

void RaiseFileLimit(size_t files) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < files + kOtherFiles) {
    limit.rlim_cur = std::min<rlim_t>(files + kOtherFiles, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace

TopologyProbers::~TopologyProbers() {
  for (Prober& prober : probers_) {
    prober.child.AskToEnd();
  }
  const auto deadline = Clock::now() + kEndPatience;
  for (Prober& prober : probers_) {
    prober.child.End(deadline);
  }
}

void TopologyProbers::Lose(int host, std::string why) {
  if (IsOut(probers_[host])) {
    return;
  }
  probers_[host].lost = std::move(why);
  probers_[host].orders.clear();
  events_.push_back({.host = host, .id = 0, .answer = std::nullopt});
}

void TopologyProbers::Send(int host, const std::string& line) {
  if (!IsOut(probers_[host]) && send(probers_[host].child.socket(), line.data(), line.size(),
                                     MSG_NOSIGNAL | MSG_DONTWAIT) != ssize_t(line.size())) {
    Lose(host, "its prober takes no orders");
  }
}

void TopologyProbers::Hear(int host, std::string_view line) {
  Prober& prober = probers_[host];
  if (prober.ready.name.empty()) {
    // Before it begins, whatever started it may have had something to say.
    if (const auto ready = topology::ParseReady(line)) {
      prober.ready = *ready;
    }
    return;
  }
  const auto result = topology::ParseResult(line);
  const auto order =
      std::find_if(prober.orders.begin(), prober.orders.end(),
                   [&](const Pending& one) { return result && one.id == result->id; });
  if (order == prober.orders.end()) {
    return Lose(host, fmt::format("its prober said \"{}\"", line.substr(0, 80)));
  }
  prober.orders.erase(order);
  events_.push_back({.host = host, .id = result->id, .answer = std::string(result->answer)});
}

void TopologyProbers::Read(int host) {
  Prober& prober = probers_[host];
  char bytes[4096];
  const ssize_t count = read(prober.child.socket(), bytes, sizeof bytes);
  if (count < 0 && errno == EINTR) {
    return;
  }
  if (count <= 0) {
    return Lose(host, fmt::format("its prober {}", prober.child.HowItEnded()));
  }
  prober.unread.append(bytes, static_cast<size_t>(count));
  size_t begin = 0;
  for (size_t end; (end = prober.unread.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Hear(host, std::string_view(prober.unread).substr(begin, end - begin));
  }
  prober.unread.erase(0, begin);
  if (prober.unread.size() > kLongestLine) {
    Lose(host, "its prober sends a line without an end");
  }
}

void TopologyProbers::Poll(Clock::time_point deadline) {
  std::vector<pollfd> waits;
  for (const Prober& prober : probers_) {
    waits.push_back(
        {.fd = IsOut(prober) ? -1 : prober.child.socket(), .events = POLLIN, .revents = 0});
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  poll(waits.data(), waits.size(), static_cast<int>(std::clamp<long>(left, 0, 60000)));
  for (size_t host = 0; host < waits.size(); ++host) {
    if (waits[host].revents != 0) {
      Read(static_cast<int>(host));
    }
  }
}

std::vector<TopologyProbers::Event> TopologyProbers::Wait(Clock::time_point until) {
  for (;;) {
    auto first = Clock::time_point::max();
    bool is_any = false;
    for (size_t host = 0; host < probers_.size(); ++host) {
      Prober& prober = probers_[host];
      is_any = is_any || !prober.orders.empty();
      // In the order in which they were given, but for those that may take for ever.
      const auto oldest = std::find_if(prober.orders.begin(), prober.orders.end(), IsUsual);
      if (oldest == prober.orders.end()) {
        continue;
      }
      if (oldest->until <= Clock::now()) {
        Lose(static_cast<int>(host),
             fmt::format("its prober was silent for {} s", patience_.count()));
      } else {
        first = std::min(first, oldest->until);
      }
    }
    if (!events_.empty() || !is_any || until <= Clock::now()) {
      return std::exchange(events_, {});
    }
    Poll(std::min({first, until, Clock::now() + std::chrono::minutes(1)}));
  }
}

// Two names of one host would be a switch's length apart, and measure over loopback.
void TopologyProbers::LoseDuplicates(const topology::HostList& hosts) {
  std::map<std::pair<std::string, std::string>, int> seen;
  for (size_t host = 0; host < probers_.size(); ++host) {
    const topology::ProbeReady& ready = probers_[host].ready;
    if (IsOut(probers_[host])) {
      continue;
    }
    const auto [other, is_new] =
        seen.try_emplace({ready.name, ready.at.address}, static_cast<int>(host));
    if (!is_new) {
      Lose(static_cast<int>(host),
           fmt::format("the same host as {}: {} at {}", hosts.names[other->second], ready.name,
                       ready.at.address));
    }
  }
}

absl::Status TopologyProbers::Start(const topology::HostList& hosts, const std::string& command,
                                    int timeout_s) {
  RaiseFileLimit(hosts.names.size());
  if (getrandom(key_.data(), key_.size(), 0) != ssize_t(key_.size())) {
    return absl::InternalError(fmt::format("getrandom: {}", std::strerror(errno)));
  }
  for (size_t i = 0; i < hosts.names.size(); ++i) {
    const std::string site =
        hosts.cluster_of.empty() ? "" : hosts.cluster_names[hosts.cluster_of[i]];
    RETURN_IF_ERROR(
        probers_.emplace_back().child.Start(command, {{"HOST", hosts.names[i]}, {"SITE", site}}));
  }
  const auto deadline = Clock::now() + std::chrono::seconds(timeout_s);
  while (std::any_of(probers_.begin(), probers_.end(), IsWaitedFor) && Clock::now() < deadline) {
    Poll(deadline);
  }
  for (size_t i = 0; i < probers_.size(); ++i) {
    if (IsWaitedFor(probers_[i])) {
      Lose(static_cast<int>(i), fmt::format("its prober was not ready within {} s", timeout_s));
    }
    Send(static_cast<int>(i), topology::PrintKeyOrder(key_));
  }
  LoseDuplicates(hosts);
  if (!probers_.empty() && std::all_of(probers_.begin(), probers_.end(), IsOut)) {
    return topology::errors::NoProber(hosts.names[0], probers_[0].lost);
  }
  return absl::OkStatus();
}

void TopologyProbers::Order(int host, long id, const std::string& line, Patience patience) {
  if (!IsOut(probers_[host])) {  // else the event that says so is on its way
    probers_[host].orders.push_back(
        {id, patience == Patience::kUsual ? Clock::now() + patience_ : Clock::time_point::max()});
    Send(host, line);
  }
}

}  // namespace sekisho::client
