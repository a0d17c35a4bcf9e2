// SPDX-License-Identifier: Apache-2.0
// Keeps the tree of the site's network: now and then has the agents run a prober on every node, as
// a task of nobody's job, and orders measurements.  docs/protocol/12-topology.md, "The tree of a
// site".  Pure: messages and seconds come in and go out.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "proto/nodes.pb.h"
#include "topology/probe/dispatcher.h"
#include "topology/probe/orders.h"
#include "topology/upkeep.h"

namespace sekisho::qserver {

class NetworkKeeper {
 public:
  struct Settings {
    topology::UpkeepOptions upkeep;
    std::string prober;     // sekisho-agent, as the nodes have it
    std::string account;    // as whom it runs
    std::string interface;  // empty: the first
    double ready_within_s = 20;
    double answer_within_s = 10;
  };
  using Send = std::function<void(const std::string& node, proto::ServerMessage message)>;
  using MakeKey = std::function<topology::ProbeKey()>;

  NetworkKeeper(Settings settings, Send send, MakeKey make_key);

  void Restore(topology::NamedTree tree, double now_s) { upkeep_.Restore(std::move(tree), now_s); }
  void Attached(const std::string& node, double now_s);
  void Detached(const std::string& node, double now_s);
  // False: it is about a job's task.
  bool Handle(const std::string& node, const proto::AgentMessage& message, double now_s);
  // To be called every second or so.
  void Tick(double now_s);

  // What the last sessions found, in words; nothing: no session has ended since.
  std::optional<std::string> TakeNews();
  const topology::Upkeep& upkeep() const { return upkeep_; }

 private:
  struct Prober {
    std::string unread;
    uint64_t heard = 0;  // bytes of its output
    uint64_t sent = 0;   // bytes of its input
    std::optional<topology::ProbeReady> ready;
    std::map<long, double> orders;  // until when they are to be answered
    int host = -1;                  // in the session
    bool is_lost = false;
  };

  proto::TaskKey Key() const;
  void Launch(double now_s);
  void Say(const std::string& node, Prober& prober, const std::string& line, bool is_end = false);
  void Hear(const std::string& node, Prober& prober, std::string_view line);
  void Lose(Prober& prober);
  void Begin(double now_s);
  void Order(double now_s);
  void End(double now_s);
  void Forget(const std::string& node, const std::string& job);

  const Settings settings_;
  const Send send_;
  const MakeKey make_key_;
  topology::Upkeep upkeep_;
  std::set<std::string> attached_;

  topology::ProbeKey key_{};               // of the session
  std::string job_;                        // of which its probers' tasks seem to be
  std::string last_job_;                   // of the session before
  std::map<std::string, Prober> probers_;  // of the session; empty: there is none
  double ready_until_s_ = 0;
  std::optional<topology::Upkeep::Session> session_;
  std::optional<topology::Dispatcher> dispatcher_;
  std::map<int, std::string> node_of_;
  std::optional<std::string> news_;
};

}  // namespace sekisho::qserver
