// SPDX-License-Identifier: Apache-2.0
// The site's network while the daemon runs: the keeper's clock, its key, and the file of its tree.
#pragma once

#include <functional>
#include <string>

#include "common/loop.h"
#include "common/status.h"
#include "qserver/network_keeper.h"

namespace sekisho::qserver {

class NetworkWatch {
 public:
  // The tree is at `path`, whole or not at all.  `on_change` is called on the loop when it is
  // another.
  NetworkWatch(Loop& loop, NetworkKeeper::Settings settings, std::string path,
               NetworkKeeper::Send send, std::function<void()> on_change);
  NetworkWatch(const NetworkWatch&) = delete;
  NetworkWatch& operator=(const NetworkWatch&) = delete;

  void Restore();         // before Run: a tree that cannot be read is said, and inferred again
  awaitable<void> Run();  // for ever

  void Attached(const std::string& node) { keeper_.Attached(node, Now_s()); }
  void Detached(const std::string& node) { keeper_.Detached(node, Now_s()); }
  bool Handle(const std::string& node, const proto::AgentMessage& message) {
    return keeper_.Handle(node, message, Now_s());
  }

  const topology::Upkeep& upkeep() const { return keeper_.upkeep(); }
  int64_t changed_ms() const { return changed_ms_; }  // by the wall clock; 0: there is no tree

 private:
  static double Now_s();  // steady
  void Write();

  Loop& loop_;
  const std::string path_;
  const std::function<void()> on_change_;
  NetworkKeeper keeper_;
  int64_t changed_ms_ = 0;
};

}  // namespace sekisho::qserver
