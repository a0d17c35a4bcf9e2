// SPDX-License-Identifier: Apache-2.0
// Between libpmix's server and the agent: fences become PMI-1 barriers, and what clients do is said
// to the agent.
#pragma once

#include <sys/types.h>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/rank/pmi_client.h"
#include "agent/rank/pmix_server.h"

namespace sekisho::agent::pmix {

class Host {
 public:
  // `program`: our child, whose end is ours.  `signals`: a signalfd, SIGCHLD and what `program` is
  // to be told.  `version`: readable once it has said which MPI it has loaded; -1: it will not.
  Host(PmiClient& pmi, const Layout& layout, pid_t program, int signals, int version)
      : pmi_(pmi), layout_(layout), program_(program), signals_(signals), version_(version) {}

  // Until `program` has ended, and how it left MPI is known: its exit code, 128 + its signal.
  int Run(int rank);
  // It has begun MPI and not finished it.
  bool IsInside(int rank) const { return inside_.count(rank) > 0; }
  // The other ranks of the node, until `gone` is readable: the code to end with.
  int ServeOthers(int gone);

 private:
  // Of the fence that is being done.
  std::string Key(int node) const;
  // Waits for something to happen, and does it.  `other`: besides; true if that is readable, or `timeout_ms` are over.
  bool Serve(int other, int timeout_ms);
  void OnEvent(std::unique_ptr<Event> event);
  void OnSignal();
  void Begin();
  bool PutVersion();
  void OnBarrier(bool is_ok);
  void LetGoAll();

  PmiClient& pmi_;
  const Layout& layout_;
  const pid_t program_;
  const int signals_;
  const int version_;
  bool has_agent_ = true;
  std::optional<int> code_;  // of the program
  std::set<int> inside_;
  std::set<int> lost_;  // of them
  std::deque<std::unique_ptr<Event>> fences_;
  std::deque<std::unique_ptr<Event>> leaving_;
  int fences_done_ = 0;
};

}  // namespace sekisho::agent::pmix
