// SPDX-License-Identifier: Apache-2.0
// The porter's part in streams that are encrypted end to end: between the program's own connection,
// over loopback, and the relay's.  docs/protocol/14-nxproxy-encryption.md, "Where it is done".
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "nxproxy/client/porter/door.h"
#include "nxproxy/client/porter/latest_end.h"
#include "nxproxy/client/porter/pump.h"
#include "nxproxy/wire/address.h"

namespace sekisho::nxproxy::client {

class Encryption {
 public:
  using Say = std::function<void(const std::string& line)>;

  Encryption(Loop& loop, std::unique_ptr<OwnEnd> end, Say say);
  Encryption(const Encryption&) = delete;
  Encryption& operator=(const Encryption&) = delete;

  const OwnEnd& end() const { return end_.known(); }

  // ---- Who accepts: greets the peer on `fd`, who may mean any of `names`; tells when it is good.
  using OnGreeted = std::function<void(std::unique_ptr<Channel>)>;
  void Greet(int fd, std::vector<std::string> names, OnGreeted on_greeted);
  void Join(std::unique_ptr<Channel> program, std::unique_ptr<Channel> far);

  // ---- Who connects: to the door, with the cookie as its first bytes.
  struct Destination {
    std::string name;           // what was meant
    std::function<int()> dial;  // a connection to the relay, preface and all; -1
  };
  const wire::Address& door() const { return door_.address(); }
  std::string Expect(const Destination& destination);

 private:
  using Greetings = std::list<std::unique_ptr<Greeting>>;
  void Lead(int fd, const Destination& destination);
  void Start(std::unique_ptr<TlsStream> stream, Greeting::OnDone on_done);

  Loop& loop_;
  LatestEnd end_;
  const Say say_;
  Door door_;  // of programs, on loopback
  Greetings greetings_;
  std::list<std::unique_ptr<Pump>> pumps_;
};

}  // namespace sekisho::nxproxy::client
