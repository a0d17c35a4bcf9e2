// SPDX-License-Identifier: Apache-2.0
// A prober on every host, started by a shell command for each (ssh, sekisho run, ip netns exec,
// ...), told what to do on its standard input.  docs/protocol/12-topology.md, "Probers".
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/topology/shell_child.h"
#include "common/status.h"
#include "topology/probe/orders.h"
#include "topology/text_format.h"

namespace sekisho::client {

class TopologyProbers {
 public:
  using Clock = std::chrono::steady_clock;

  // One that does not obey an order for so long is lost.
  explicit TopologyProbers(std::chrono::seconds patience = std::chrono::seconds(10))
      : patience_(patience) {}
  ~TopologyProbers();  // ends them

  // Runs `command` for each host, with HOST and SITE in its environment.  Returns once all are
  // ready or have failed, or after `timeout_s`; an error if none is.
  absl::Status Start(const topology::HostList& hosts, const std::string& command, int timeout_s);

  int count() const { return static_cast<int>(probers_.size()); }
  // As the host calls itself, and where it answers.
  const topology::ProbeReady& Ready(int host) const { return probers_[host].ready; }
  // Why a host is out of it; empty if it is not.
  const std::string& Lost(int host) const { return probers_[host].lost; }

  // Ids are the caller's, and not used twice.  A host that does not obey in time is lost.
  enum class Patience { kUsual, kEndless };
  void Order(int host, long id, const std::string& line, Patience patience = Patience::kUsual);

  struct Event {
    int host = 0;
    long id = 0;
    std::optional<std::string> answer;  // nothing: the host is lost, and so are all its orders
  };
  // What came, at least one if an order is under way and `until` is not over.
  std::vector<Event> Wait(Clock::time_point until = Clock::time_point::max());

 private:
  struct Pending {
    long id;
    Clock::time_point until;
  };
  struct Prober {
    ShellChild child;
    std::string unread;
    topology::ProbeReady ready;
    std::string lost;
    std::deque<Pending> orders;
  };

  static bool IsUsual(const Pending& order) { return order.until != Clock::time_point::max(); }
  static bool IsOut(const Prober& prober) { return !prober.lost.empty(); }
  static bool IsWaitedFor(const Prober& prober) {
    return !IsOut(prober) && prober.ready.name.empty();
  }
  void Lose(int host, std::string why);
  void Send(int host, const std::string& line);
  // Reads what there is, until `deadline` if there is nothing.
  void Poll(Clock::time_point deadline);
  void Read(int host);
  void Hear(int host, std::string_view line);
  void LoseDuplicates(const topology::HostList& hosts);

  std::chrono::seconds patience_;
  topology::ProbeKey key_{};
  std::deque<Prober> probers_;
  std::vector<Event> events_;
};

}  // namespace sekisho::client
