// SPDX-License-Identifier: Apache-2.0
// The row of relays between us and where endpoints live: one, or an inner one and the one behind
// it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nxproxy/client/porter/session.h"

namespace sekisho::nxproxy::client {

class Relays {
 public:
  // As of a session, of the last relay of the row; but on_down, of either, is given whole words.
  Relays(Loop& loop, const wire::HostPort& server, const std::string& program, int64_t beat_most_ms,
         Session::Handlers handlers);

  ~Relays() { loop_.Cancel(told_); }
  Relays(const Relays&) = delete;
  Relays& operator=(const Relays&) = delete;

  void Start() { first_->Start(); }
  void Leave();

  // Of the last relay; only once on_up was called.
  Session& session() { return *last_; }
  const wire::Address& dial_address() const { return first_->dial_address(); }
  const std::string& server_text() const { return first_->server_text(); }

  // The addresses that relayed connections seem to lead to, or endpoints are at: "A[,B]".
  std::string AddressesText() const;

 private:
  Session::Handlers HandlersOf(bool is_first);
  void OnUp(bool is_first, bool is_resumed);
  void OnDown(bool is_first, const std::string& why);

  Loop& loop_;
  const std::string program_;
  const int64_t beat_most_ms_;
  const Session::Handlers handlers_;
  std::unique_ptr<Session> first_;
  std::unique_ptr<Session> second_;
  Session* last_ = nullptr;
  Loop::TimerId told_ = 0;
};

}  // namespace sekisho::nxproxy::client
