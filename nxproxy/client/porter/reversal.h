// SPDX-License-Identifier: Apache-2.0
// Connections that the far end dials, on our invitation: where it can reach us they save the relay.
// docs/protocol/11-nxproxy-shim.md, "Reversed".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

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

  // Tells `then` whether the listener at the end of `way`, or another of its site, could dial us.
  // If nobody knows it is tried, beside; who waits for that, a second at most, is told later.
  void Try(Session& session, const Way& way, bool waits, std::function<void(bool does_work)> then);
  void Invite(Session& session, const Way& way, OnStream on_stream);

 private:
  struct Known {
    bool does_work = false;
    bool is_tried = false;  // now
    int64_t until_ms = 0;
    std::vector<std::function<void(bool)>> waiting;  // for the trial
  };

  void Ask(Session& session, const Way& way, int64_t limit_ms, OnStream on_stream);
  void Begin(Session& session, const Way& way);
  void Learn(const std::string& place, bool does_work);

  Loop& loop_;
  const wire::Address here_;
  Door door_;
  std::map<std::string, Known> known_;  // by the site, or the endpoint's address at the relay
};

}  // namespace sekisho::nxproxy::client
