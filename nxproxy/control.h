// SPDX-License-Identifier: Apache-2.0
// One control connection, either side of it: frames in TLS over a socket.
#pragma once

#include <functional>
#include <string>

#include "nxproxy/poller.h"
#include "nxproxy/tls_channel.h"
#include "nxproxy/wire/address.h"
#include "nxproxy/wire/message.h"

namespace sekisho::nxproxy {

class Control final : public Handler {
 public:
  struct Events {
    std::function<void()> established;
    std::function<void(wire::Message)> received;
    std::function<void(const std::string& why)> lost;  // it may be destroyed now
  };

  // `first`: bytes that came already.  Call Start() once the events can come.
  Control(Poller& poller, Descriptor socket, TlsChannel channel, Events events);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  void Start(std::string_view first);
  void Send(const wire::Message& message);
  // Sends what is left, then loses itself with `why`.
  void Finish(const std::string& why);

  void OnEvents(uint32_t events) override;

  identity::Chain PeerChain() const { return channel_.PeerChain(); }
  wire::Address local() const;
  wire::Address peer() const;
  bool is_established() const { return channel_.is_established(); }
  int64_t heard_ms = 0;  // the owner's clock, set by the owner

 private:
  void Take(std::string_view bytes);
  void Flush();
  void Lose(const std::string& why);

  Poller& poller_;
  Descriptor socket_;
  TlsChannel channel_;
  Events events_;
  std::string frames_;  // not yet whole
  std::string output_;  // not yet sent
  bool was_established_ = false;
  bool is_lost_ = false;
  bool is_inside_ = false;  // Take() is on the stack
  std::string finish_;
};

}  // namespace sekisho::nxproxy
