// SPDX-License-Identifier: Apache-2.0
// The ranks of one job on this node, as their process manager: the key-value space, and the barrier
// that joins with the other nodes'.  docs/protocol/15-mpirun.md, "Start-up".  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/pmi_wire.h"
#include "proto/nodes.pb.h"

namespace sekisho::agent {

class PmiRanks {
 public:
  struct Effects {
    std::vector<std::pair<int, std::string>> lines;  // to ranks, with their ends
    std::optional<proto::Fence> fence;               // what this node gives
    std::string complaint;  // it broke the protocol: its connection goes
    std::optional<int> aborted;  // this rank waits to be killed
    bool has_left = false;  // it is known how one of them left MPI
    bool is_news = false;   // the same said to another PmiRanks makes it what this one is now
  };

  PmiRanks(int ranks, int local_ranks, std::string world)
      : ranks_(ranks), local_ranks_(local_ranks), world_(std::move(world)) {}

  void SetProcessMapping(const std::string& mapping) { pairs_["PMI_process_mapping"] = mapping; }

  // `number`: of the line among the rank's.  A rank whose agent was killed says again what had no answer: it does no
  // harm.
  Effects OnLine(int rank, uint64_t number, std::string_view line);
  Effects OnFenceDone(const proto::Fence& result);
  // It has said that it begins, and not that it ends.
  bool IsInside(int rank) const { return inside_.count(rank) > 0; }
  // It is inside as far as we were told, and its node's PMIx server has yet to say how it left.
  bool IsLeaving(int rank) const { return speaker_ && IsInside(rank) && lost_.count(rank) == 0; }
  bool Speaks(int rank) const { return speaker_ == rank; }
  // Its connection has ended: what it has not said it never will.
  void OnGone(int rank);
  // The code it called MPI_Abort with.
  std::optional<int> AbortCode(int rank) const;
  // What this node has given and has no answer to: said again after a connection was lost.
  const std::optional<proto::Fence>& pending() const { return pending_; }
  // What it gave before that.  It has the answer, and others may not: no node is more than one collective ahead.
  const std::optional<proto::Fence>& last() const { return last_; }
  // The number of the last line by which it came to a barrier.
  uint64_t Entered(int rank) const;

 private:
  Effects EnterBarrier(int rank, uint64_t number);
  std::string Put(const PmiCommand& command);

  const int ranks_;
  int local_ranks_;  // that come to a barrier
  const std::string world_;
  PmiPairs pairs_;
  PmiPairs fresh_;  // put since the last barrier
  std::set<int> inside_;
  std::optional<int> speaker_;  // the rank whose connection is the node's PMIx server's
  std::set<int> lost_;          // gone without a word, as the speaker says
  std::set<int> waiting_;
  std::map<int, uint64_t> entered_;  // each rank's last barrier_in
  std::map<int, int> aborted_;
  uint64_t barriers_ = 0;
  std::optional<proto::Fence> pending_;
  std::optional<proto::Fence> last_;
};

}  // namespace sekisho::agent
