// SPDX-License-Identifier: Apache-2.0
// A rank's side of PMI-1, spoken to the agent by what stands between it and an Open MPI program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sekisho::agent {

class PmiClient {
 public:
  explicit PmiClient(int fd) : fd_(fd) {}

  // True if the agent answers as a process manager.
  bool Init();
  struct Place {
    int rank = 0;
    int size = 0;
  };
  std::optional<Place> AskPlace();
  // The node of each rank of the world.
  std::optional<std::vector<int>> NodesOfRanks(int ranks);

  // Values of any bytes and length, cut into as many pairs as that takes.
  bool Put(const std::string& key, std::string_view value);
  // As it is: for who reads it is no PmiClient.
  bool PutText(const std::string& key, const std::string& value);
  // Nothing if nobody has put it before the last barrier.
  std::optional<std::string> Get(const std::string& key);
  bool Barrier();

  // The halves of a barrier, for who has other things to wait for meanwhile.
  bool EnterBarrier() { return Say("cmd=barrier_in"); }
  bool LeaveBarrier() { return Answer().starts_with("cmd=barrier_out"); }

  bool Finalize();
  // From now on we speak for all ranks of this node: docs/protocol/15-mpirun.md, "Open MPI".
  bool Represent();
  bool SayInside(int rank);
  bool SayOutside(int rank);  // once the agent knows
  bool SayLost(int rank);     // it has gone without that
  bool SayAborted(int rank, int code);

  int fd() const { return fd_; }

 private:
  bool Say(const std::string& line);
  // "" once the agent has gone.
  std::string Answer();
  std::string Ask(const std::string& line) { return Say(line) ? Answer() : ""; }

  const int fd_;
  std::string input_;
};

// "(vector,(FIRST_NODE,NODES,RANKS_PER_NODE),...)": the node of each rank.  Nothing if it is no
// such text, not of so many ranks, or passes over a node.
std::optional<std::vector<int>> ParseProcessMapping(std::string_view mapping, int ranks);

}  // namespace sekisho::agent
