// SPDX-License-Identifier: Apache-2.0
// One way out of several: a relay, or a row of them, with all that we have there.  A site may have several
// outer relays; each listener is an endpoint at each of them, connections take turns.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "nxproxy/client/porter/arrivals.h"
#include "nxproxy/client/porter/endpoints.h"
#include "nxproxy/client/porter/relays.h"
#include "nxproxy/client/porter/ways.h"

namespace sekisho::nxproxy::client {

class Gate {
 public:
  struct Handlers {
    std::function<void(Gate&, bool is_resumed)> on_up;
    std::function<void(Gate&, const Refusal&)> on_down;
    std::function<void(const std::string&)> on_line;     // for the user
    std::function<void(const std::string&)> on_trouble;  // the same; it may repeat
    // A connection that was dialled: "" or its destination, and why it is none.
    std::function<void(const std::string& destination, const std::string& why)> on_failed;
    std::function<void(Gate&, const wire::Opening&, int fd)> on_joined;
  };

  Gate(Loop& loop, const wire::HostPort& server, const std::string& program, int64_t beat_most_ms, Handlers handlers);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void Start() { relays_.Start(); }
  void Leave() { relays_.Leave(); }

  // From the first time on that it was up.
  bool has_been_up() const { return endpoints_ != nullptr; }
  Endpoints& endpoints() { return *endpoints_; }
  Ways& ways() { return *ways_; }
  // It is up: binds what there is to bind, at first as `plan` says.
  void Open(const BindPlan& plan, bool is_resumed);
  Session& session() { return relays_.session(); }
  bool demands_encryption() { return relays_.session().welcome().encrypt != 0; }

  const std::string& server_text() const { return relays_.server_text(); }
  std::string AddressesText() const { return relays_.AddressesText(); }
  const wire::Address& dial_address() const { return relays_.dial_address(); }

  // A connection's first bytes; `destination`: for the user, should it fail.
  std::string Mint(const std::string& target, const wire::Address& from,
                   const wire::Address& destination);

 private:
  Session::Handlers SessionHandlers();
  void OnMessage(const wire::Message& message);
  void Follow(const wire::Message& invited);
  void AdjustSpares();

  Loop& loop_;
  const Handlers handlers_;
  Relays relays_;
  std::unique_ptr<Endpoints> endpoints_;
  std::unique_ptr<Ways> ways_;
  std::unique_ptr<Arrivals> arrivals_;
  std::string direct_;
  std::map<uint64_t, std::string> dialled_;  // destination by ticket, for FAILED
};

}  // namespace sekisho::nxproxy::client
