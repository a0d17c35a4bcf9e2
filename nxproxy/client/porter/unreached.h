// SPDX-License-Identifier: Apache-2.0
// A rank of a multi-site program that cannot reach the others would wait for ever.  This decides that it is so, and
// ends the command with a sentence that names both: docs/protocol/15-mpirun.md, "Unreachable".
#pragma once

#include <functional>
#include <map>
#include <string>

#include "nxproxy/client/porter/loop.h"

namespace sekisho::nxproxy::client {

class Unreached {
 public:
  using End = std::function<void(const std::string& sentence)>;

  // `own`: "rank 3 at siteB".
  Unreached(Loop& loop, std::string own, End end)
      : loop_(loop), own_(std::move(own)), end_(std::move(end)) {}
  ~Unreached() { loop_.Cancel(timer_); }
  Unreached(const Unreached&) = delete;
  Unreached& operator=(const Unreached&) = delete;

  // `peer`: who is there, "rank 0 at siteA".
  void OnDialled(const std::string& destination, const std::string& peer);
  // A connection that will never be.
  void OnFailed(const std::string& destination, const std::string& why);
  // The relay, which all connections to other sites went through; it may come back.
  void OnAway(const std::string& why);
  void OnBack();

  // What it is about to be ended for; "": it reaches them.
  const std::string& sentence() const { return sentence_; }

 private:
  void EndAfter(int64_t ms, const std::string& peer, const std::string& why);

  Loop& loop_;
  const std::string own_;
  const End end_;
  std::map<std::string, std::string> peers_;  // by destination
  std::string last_peer_;
  std::string sentence_;
  bool is_away_ = false;
  Loop::TimerId timer_ = 0;
};

}  // namespace sekisho::nxproxy::client
