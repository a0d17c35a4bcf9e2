// SPDX-License-Identifier: Apache-2.0
// Data connections that wait at the relay for a peer: spares, and answers to ANNOUNCE.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "nxproxy/client/porter/session.h"

namespace sekisho::nxproxy::client {

class Arrivals {
 public:
  // `fd` now belongs to the callee: the peer's bytes follow.
  using OnJoined = std::function<void(const wire::Opening&, int fd)>;

  Arrivals(Loop& loop, Session& session, OnJoined on_joined);
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  // How many spares there shall be, and of which address family: that of the listeners.
  void Want(size_t spares, bool is_v6);
  void Renew();  // the session is a new one: what waits is worth nothing
  void Take(const wire::Message& announce);
  void Follow(const wire::Message& invited);  // to who invites us, past the relay

 private:
  struct Waiting {
    std::string opening;
    bool is_spare = false;
    uint64_t invited = 0;      // to be a stream of this endpoint
    Loop::TimerId limit = 0;
  };

  bool Dial(uint64_t stream);
  void Fill();
  void OnEvents(int fd);
  void Drop(int fd);

  Loop& loop_;
  Session& session_;
  const OnJoined on_joined_;
  size_t wanted_ = 0;
  size_t spares_ = 0;
  bool is_v6_ = false;
  int failures_ = 0;  // in a row
  Loop::TimerId retry_ = 0;
  std::map<int, Waiting> waiting_;
};

}  // namespace sekisho::nxproxy::client
