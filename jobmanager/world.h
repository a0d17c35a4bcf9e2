// SPDX-License-Identifier: Apache-2.0
// A world as its leader sees it: parts stand ready, are released together, exchange what their
// ranks need to find each other, and end together.  docs/protocol/15-mpirun.md.  Pure: no clock, no
// I/O.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/status.h"
#include "proto/coalloc.pb.h"
#include "proto/world.pb.h"

namespace sekisho::jobmanager {

class World {
 public:
  using StartType = proto::Charter::StartType;
  struct Part {
    std::string site;
    int count = 0;
    StartType start = proto::Charter::STRICT_BARRIER;
    std::optional<int> replaces = {};  // the part whose place in the order of ranks it takes
    std::vector<int> ranks = {};       // of each process, if they are not consecutive
    std::string label = {};            // its user's name for it; empty: none
    bool is_independent = false;       // its ranks meet no other part's
  };
  // What follows: an order to a part, or news for whoever looks on.
  struct Effects {
    std::vector<std::pair<int, proto::Order>> orders;
    std::vector<proto::LeadUpdate> updates;
    bool is_release_due = false;  // durable first, then Release()
  };

  enum class Hold {
    kNone,  // released as soon as it is whole
    kHeld,  // its user edits it, and says when
    kOver,  // its user has said so
  };

  // `dropped`: parts that had been when an earlier leader stored the world.
  World(std::string name, const std::vector<Part>& parts, const std::set<int>& dropped = {},
        Hold hold = Hold::kNone);

  // The part exists at its site, or was refused there.
  Effects OnSubmitted(int part, const std::string& job_id);
  Effects OnRefused(int part, const absl::Status& refusal);
  Effects OnReport(int part, const proto::Report& report);
  // A new connection to the part: it may have missed what was said.
  Effects OnConnected(int part);
  // Nobody has heard of the part for so long, last because of `why`: the world ends without its
  // word.  When it is there again it is told so.
  Effects OnLost(int part, int seconds, const std::string& why);
  // Ends all that has not ended.
  Effects Abort(const std::string& reason, const std::string& remedy);
  // The way to the part is broken, until something is heard of it again.
  void OnTrouble(int part, const std::string& why);
  // Not all parts stand ready within the time.
  Effects OnLate(int seconds);
  // All parts stand ready, or were released before we were started again.
  Effects Release();

  // Edits of a held world: world_edit.cc.  FailedPrecondition if it is held no more.
  absl::StatusOr<Effects> Add(const Part& part);
  absl::StatusOr<Effects> Drop(int part);
  absl::StatusOr<Effects> EndHold(bool only_if_ready);
  Effects Cancel();
  // As its user sees it; what only the leader knows is left out.
  proto::CoallocReply View() const;

  bool is_released() const { return is_released_; }
  bool has_ended() const { return has_ended_; }
  bool IsLost(int part) const { return parts_[part].is_lost; }
  // The others run without it.
  bool IsDropped(int part) const { return parts_[part].dropped.has_value(); }
  // Who meets in the world of this part, in the order of ranks.
  std::vector<int> Members(int part) const;
  const proto::WorldEnded& end() const { return end_; }

 private:
  struct State {
    std::string site;
    int count = 0;
    StartType start = proto::Charter::STRICT_BARRIER;
    std::optional<int> replaces;
    std::vector<int> ranks;
    std::string label;
    bool is_independent = false;
    std::string job_id;
    std::optional<proto::Report::Ready> ready;
    std::string waiting;
    std::string trouble;                 // of the way there; empty: it is open
    std::optional<std::string> dropped;  // why
    bool has_ended = false;              // or was refused
    bool is_lost = false;
    std::string mpi;                     // that its ranks have loaded, once they have said so

    bool starts_alone() const { return start == proto::Charter::NO_BARRIER; }
    bool is_alone() const { return starts_alone() || is_independent; }  // a world of its own
    std::string WhyNotReady() const;
    bool is_awaited() const { return !starts_alone() && !dropped; }  // before the release
    bool is_member() const { return !is_alone() && !dropped; }       // of the one MPI_COMM_WORLD
  };
  struct Collective {
    std::map<int, std::string> given;  // by part
    std::set<int> told;                // of what the others have given
  };

  proto::Order OrderTo(int part) const;
  proto::Order ReleaseOf(int part) const;
  void Append(const Part& part);
  std::string NameOf(int part) const;  // "part 1 (back) at siteB"
  absl::Status MayEdit() const;
  Effects Remove(int part, const std::string& why);
  proto::CoallocReply::State StateOf(const State& part) const;
  // By part; -1: not in the one world.
  std::vector<int> FirstRanks() const;
  std::vector<int> NodesOfRanks(const std::vector<int>& members) const;  // who stand ready
  bool IsWhole() const;  // who is awaited has stood ready
  bool IsNeeded(const State& part) const;  // its end is the end of all
  void ToAll(Effects& effects, int except = -1);
  void Fail(proto::WorldEnded end, int except, Effects& effects);
  // What befell a part: the end of all, or of this one, by its start type.
  void FailPart(int part, proto::WorldEnded end, Effects& effects);
  void ReleaseIfWhole(Effects& effects);
  void EndIfComplete(Effects& effects);
  void OnFence(int part, const proto::Fence& fence, Effects& effects);
  void WarnOfVersions(const std::vector<int>& members, Effects& effects);
  void OnEnded(int part, const proto::WorldEnded& ended, Effects& effects);
  void OnRankFailed(int part, const proto::Report::RankFailed& failed, Effects& effects);

  const std::string name_;
  std::vector<State> parts_;
  std::vector<int> order_;  // all parts, in the order of ranks
  std::map<std::pair<int, std::string>, Collective> collectives_;  // by its first member and id
  Hold hold_;
  bool is_released_ = false;
  bool has_ended_ = false;
  bool has_warned_ = false;  // of MPI's versions
  std::optional<proto::WorldEnded> failure_;  // why it is ending
  proto::WorldEnded end_;
};

// PMI's word for which ranks share a node: "(vector,(0,2,1),(2,1,2))", of the node of each rank.
std::string ProcessMapping(const std::vector<int>& node_of_rank);

}  // namespace sekisho::jobmanager
