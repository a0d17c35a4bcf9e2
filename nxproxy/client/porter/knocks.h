// SPDX-License-Identifier: Apache-2.0
// Peers at the door: a knock at the program's listener for each, until its shim claims the stream.
// docs/protocol/11-nxproxy-shim.md, "accept".
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "nxproxy/client/porter/channel.h"
#include "nxproxy/client/porter/loop.h"
#include "nxproxy/client/porter/proc_net.h"

namespace sekisho::nxproxy::client {

// A peer's connection, and whom it joins.
struct Visitor {
  std::unique_ptr<Channel> stream;  // nullptr: nobody
  bool is_encrypted = false;        // the program keeps the knock, which the stream is joined to
  std::unique_ptr<Channel> knock;   // then
  wire::Address peer;
  wire::Address self;  // what the program shall take for its own end
  bool is_v6 = false;  // the listener's family
};

class Knocks {
 public:
  // `listener`: nobody listened there.
  using OnRefused = std::function<void(const wire::Address& listener)>;

  Knocks(Loop& loop, OnRefused on_refused) : loop_(loop), on_refused_(std::move(on_refused)) {}
  ~Knocks();
  Knocks(const Knocks&) = delete;
  Knocks& operator=(const Knocks&) = delete;

  // Knocks at `listener`, an address of this host; the visitor's stream is reset if nobody opens.
  void Knock(const wire::Address& listener, bool is_v6_only, Visitor visitor);

  // The visitor who knocked from `remote` at `local`; without a stream if nobody did.  The knock is over.
  Visitor Claim(const wire::Address& local, const wire::Address& remote);

 private:
  struct Waiting {
    int knock = -1;
    wire::Address listener;
    Visitor visitor;
  };
  using Table = std::map<Pair, Waiting, PairLess>;

  void OnEvents(const Pair& ends);
  void TurnAway(Table::iterator waiting);

  Loop& loop_;
  const OnRefused on_refused_;
  Table waiting_;  // by the program's view: its own end, the knock's
};

}  // namespace sekisho::nxproxy::client
