// SPDX-License-Identifier: Apache-2.0
// Connections that the far end dials, on our invitation: where it can reach us they save the relay.
// docs/protocol/11-nxproxy-shim.md, "Reversed".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "nxproxy/client/porter/door.h"
#include "nxproxy/client/porter/session.h"
#include "nxproxy/client/porter/ways.h"

namespace sekisho::nxproxy::client {

// What the invited side shows of the cookie; bytes that the relay cannot choose.
std::string ShownOf(const std::string& cookie);

class Reversal {
 public:
  // With the endpoint's stream, or -1: it was refused, or did not come in time.
  using OnStream = std::function<void(int fd)>;

  // `here`: the address at which we may be reached.
  Reversal(Loop& loop, const wire::Address& here);

  uint16_t port() const { return door_.port(); }
  wire::Address address() const;

  // Whether the listener at the end of `way` can dial us.  If nobody knows, it is tried, beside.
  bool Works(Session& session, const Way& way);
  void Invite(Session& session, const Way& way, OnStream on_stream);

 private:
  struct Known {
    bool does_work = false;
    int64_t until_ms = 0;
  };

  void Ask(Session& session, const Way& way, int64_t limit_ms, OnStream on_stream);
  void Learn(const std::string& target, bool does_work);

  Loop& loop_;
  const wire::Address here_;
  Door door_;
  std::map<std::string, Known> known_;  // by the endpoint's address at the relay
};

}  // namespace sekisho::nxproxy::client
