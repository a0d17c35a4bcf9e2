// SPDX-License-Identifier: Apache-2.0
// A world as its leader sees it: parts stand ready, are released together, exchange what their
// ranks need to find each other, and end together.  docs/protocol/15-mpirun.md.  Pure: no clock, no
// I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "proto/world.pb.h"

namespace sekisho::jobmanager {

class World {
 public:
  struct Part {
    std::string site;
    int count = 0;
    std::vector<int> ranks = {};  // of each process, if they are not consecutive
  };
  // What follows: an order to a part, or news for whoever looks on.
  struct Effects {
    std::vector<std::pair<int, proto::Order>> orders;
    std::vector<proto::LeadUpdate> updates;
    bool is_release_due = false;  // durable first, then Release()
  };

  World(std::string name, std::vector<Part> parts) : name_(std::move(name)), parts_(parts.size()) {
    for (size_t i = 0; i < parts.size(); ++i) {
      parts_[i].site = parts[i].site;
      parts_[i].count = parts[i].count;
      parts_[i].ranks = parts[i].ranks;
    }
  }

  // The part exists at its site, or was refused there.
  Effects OnSubmitted(int part, const std::string& job_id);
  Effects OnRefused(int part, const absl::Status& refusal);
  Effects OnReport(int part, const proto::Report& report);
  // A new connection to the part: it may have missed what was said.
  Effects OnConnected(int part);
  // Nobody has heard of the part for so long: the world ends without its word.  When it is there
  // again it is told so.
  Effects OnLost(int part, int seconds);
  // Ends all that has not ended.
  Effects Abort(const std::string& reason, const std::string& remedy);
  // Not all parts stand ready within the time.
  Effects OnLate(int seconds);
  // All parts stand ready, or were released before we were started again.
  Effects Release();

  bool is_released() const { return is_released_; }
  bool has_ended() const { return has_ended_; }
  bool IsLost(int part) const { return parts_[part].is_lost; }
  const proto::WorldEnded& end() const { return end_; }

 private:
  struct State {
    std::string site;
    int count = 0;
    std::vector<int> ranks;
    std::string job_id;
    std::optional<proto::Report::Ready> ready;
    std::string waiting;
    bool has_ended = false;  // or was refused
    bool is_lost = false;
  };
  struct Collective {
    std::map<int, std::string> given;  // by part
    std::optional<std::string> result;
  };

  proto::Order OrderTo(int part) const;
  bool IsWhole() const;  // every part has stood ready
  std::vector<int> NodesOfRanks() const;  // once it is whole
  void ReleaseIfWhole(Effects& effects);
  void ToAll(Effects& effects, int except = -1);
  void Fail(proto::WorldEnded end, int except, Effects& effects);
  void EndIfComplete(Effects& effects);
  void OnFence(int part, const proto::Fence& fence, Effects& effects);
  void OnEnded(int part, const proto::WorldEnded& ended, Effects& effects);
  void OnRankFailed(int part, const proto::Report::RankFailed& failed, Effects& effects);

  const std::string name_;
  std::vector<State> parts_;
  std::map<std::string, Collective> collectives_;
  bool is_released_ = false;
  bool has_ended_ = false;
  std::optional<proto::WorldEnded> failure_;  // why it is ending
  proto::WorldEnded end_;
};

// PMI's word for which ranks share a node: "(vector,(0,2,1),(2,1,2))", of the node of each rank.
std::string ProcessMapping(const std::vector<int>& node_of_rank);

}  // namespace sekisho::jobmanager
