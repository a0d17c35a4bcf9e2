// SPDX-License-Identifier: Apache-2.0
// A listener of the porter's for those who are expected: each brings a cookie as his first bytes.  Who
// brings none is reset, without a word.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <string>

#include "nxproxy/client/porter/loop.h"
#include "nxproxy/wire/address.h"

namespace sekisho::nxproxy::client {

class Door {
 public:
  static constexpr size_t kCookieBytes = 32;
  using OnCome = std::function<void(int fd)>;  // which is the callee's; what follows the cookie is unread

  // Bound to a port of the kernel's choice at `here`, and not listening yet.
  Door(Loop& loop, const wire::Address& here);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // 0: nothing could be bound.
  uint16_t port() const { return address_.port; }
  const wire::Address& address() const { return address_; }
  bool Open();  // listens from now on

  // Random; "" if there are too many already.
  std::string NewCookie();
  // Who brings `cookie` within 30 s, once.
  void Expect(const std::string& cookie, OnCome on_come);
  void Forget(const std::string& cookie) { expected_.erase(cookie); }

 private:
  struct Expected {
    OnCome on_come;
    int64_t until_ms = 0;
  };
  struct Caller {
    int fd = -1;
    int64_t since_ms = 0;
    std::string cookie;
  };

  void Came();
  void Read(std::list<Caller>::iterator caller);
  void Drop(std::list<Caller>::iterator caller);

  Loop& loop_;
  int listener_ = -1;
  bool is_open_ = false;
  wire::Address address_;
  std::map<std::string, Expected> expected_;  // by cookie
  std::list<Caller> callers_;                 // oldest first
};

}  // namespace sekisho::nxproxy::client
