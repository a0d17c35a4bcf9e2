// SPDX-License-Identifier: Apache-2.0
// The life of a site's tree: hosts come and go, and now and then a session of measurements looks
// whether it is still true.  docs/protocol/12-topology.md, "Upkeep".  Pure: seconds come in.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "topology/revise.h"
#include "topology/text_format.h"

namespace sekisho::topology {

struct UpkeepOptions {
  double settle_s = 5;          // from the last newcomer to a session: they come together
  double period_s = 600;        // between sessions
  double forget_s = 7 * 86400;  // who is away for so long loses its place
  uint64_t seed = 1;
};

class Upkeep {
 public:
  explicit Upkeep(const UpkeepOptions& options) : options_(options) {}

  // The tree of an earlier life; its hosts are away.
  void Restore(NamedTree tree, double now_s);

  void Join(const std::string& host, double now_s);
  void Leave(const std::string& host, double now_s);

  // When the next session is to begin.
  double DueAt_s() const;

  struct Session {
    std::vector<std::string> hosts;  // by the method's numbers
    std::unique_ptr<ReviseMethod> method;
  };
  // With those that can measure now; the others keep their places.
  Session Begin(const std::set<std::string>& ready, double now_s);
  // What it found, in words; empty: the tree is what it was.
  std::string End(Session session, double now_s);

  const NamedTree& tree() const { return tree_; }
  std::string Text() const { return PrintTree(tree_.tree, HostNames()); }
  uint64_t generation() const { return generation_; }  // of the tree; 0: there never was one
  bool is_under_way() const { return is_under_way_; }

 private:
  std::vector<std::string> HostNames() const;
  bool HasPlace(const std::string& host) const { return placed_.contains(host); }
  void SetTree(const Tree& tree, const std::vector<std::string>& hosts);

  UpkeepOptions options_;
  NamedTree tree_;
  std::set<std::string> placed_;
  std::set<std::string> here_;
  std::map<std::string, double> away_since_s_;  // of those with a place
  std::set<std::string> unplaceable_;           // newcomers that the last session could not place
  double first_newcomer_s_ = std::numeric_limits<double>::infinity();  // since the last session
  double last_newcomer_s_ = 0;
  double last_end_s_ = 0;
  uint64_t generation_ = 0;
  uint64_t sessions_ = 0;
  bool is_under_way_ = false;
};

}  // namespace sekisho::topology
