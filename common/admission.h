// SPDX-License-Identifier: Apache-2.0
// Which connections stay open: docs/operations/gatekeeper.md, "Limits".  Pure: no clock, no sockets.
// A connection is unfinished until a call on it has been authenticated.  When unfinished ones are too
// many the oldest goes, not the newest: a good client finishes within milliseconds, so it gets in however
// many others hang.  A peer whose connections are all in use may still come and be told so: a few more get in,
// unfinished, and cannot finish.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sekisho {

class Admission {
 public:
  using Id = uint64_t;
  using Time = std::chrono::steady_clock::time_point;

  struct Limits {
    size_t unfinished = 1024;
    size_t per_peer = 1024;  // finished connections of one peer
    size_t per_peer_spare = 16;  // and so many unfinished ones besides, at least 1
    std::chrono::milliseconds handshake{10'000};
  };
  struct Arrival {
    Id admitted = 0;
    std::optional<Id> evicted;  // close this one, it is out of the table already
  };

  explicit Admission(Limits limits) : limits_(limits) {}

  Arrival Arrive(const std::string& peer, Time now);
  // A call on it was authenticated; no-op for connections already gone.  False: its peer has all that one may
  // have, and this one stays unfinished.
  bool Finish(Id id);
  bool IsUnfinished(Id id) const { return unfinished_.count(id) > 0; }
  void Leave(Id id);
  // Unfinished connections whose time is up, taken out of the table.
  std::vector<Id> Expire(Time now);
  std::optional<Id> EvictOldest();
  std::optional<Time> NextDeadline() const;

  size_t unfinished() const { return unfinished_.size(); }
  size_t open() const { return connections_.size(); }

 private:
  struct Connection {
    std::string peer;
    Time deadline;
    bool is_finished = false;
  };
  struct Peer {
    size_t open = 0;
    std::set<Id> unfinished;
  };

  const Limits limits_;
  Id next_ = 1;
  std::map<Id, Connection> connections_;
  std::map<std::string, Peer> peers_;
  std::set<Id> unfinished_;  // ids grow with time: the first is the oldest
};

}  // namespace sekisho
