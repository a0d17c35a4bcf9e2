// SPDX-License-Identifier: Apache-2.0
// One control connection: TCP, TLS, frames.  docs/protocol/10-nxproxy.md.
#pragma once

#include <functional>
#include <string>

#include "nxproxy/client/porter/credential.h"
#include "nxproxy/client/porter/loop.h"
#include "nxproxy/wire/address.h"
#include "nxproxy/wire/message.h"

namespace sekisho::nxproxy::client {

class Control {
 public:
  struct Handlers {
    std::function<void()> on_open;  // TLS stands
    std::function<void(const wire::Message&)> on_message;
    std::function<void(const std::string& why)> on_closed;  // once
    // None of them may destroy the connection.
  };

  // Dials `place` and writes `first` before TLS; the far end must be `host`.
  Control(Loop& loop, const wire::Address& place, const std::string& first, const std::string& host,
          SSL_CTX* context, Handlers handlers);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  void Send(const wire::Message& message);
  int64_t last_heard_ms() const { return last_heard_ms_; }

 private:
  enum class State { kConnecting, kPreface, kHandshake, kOpen, kClosed };

  void OnEvents();
  bool IsConnected() const;
  bool Connect();
  bool WriteFirst();
  bool Handshake();
  void Read();
  void Write();
  void Frames();
  void Watch(bool wants_write);
  void Close(const std::string& why);

  Loop& loop_;
  const Handlers handlers_;
  std::string host_;
  std::string first_;
  State state_ = State::kConnecting;
  int fd_ = -1;
  SslPtr ssl_;
  std::string in_;
  std::string out_;
  int64_t last_heard_ms_;
  Loop::TimerId limit_ = 0;
};

}  // namespace sekisho::nxproxy::client
