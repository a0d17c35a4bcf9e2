// SPDX-License-Identifier: Apache-2.0
// A connection through the relay on its way: waits for the relay's opening.
#pragma once

#include <functional>
#include <string>

#include "nxproxy/client/porter/loop.h"
#include "nxproxy/wire/error.h"

namespace sekisho::nxproxy::client {

class Call {
 public:
  using OnOpen = std::function<void(int fd, wire::Code code)>;  // once; fd is -1 if it failed

  // Of `fd`, which it owns until then; -1: could not be dialled.
  Call(Loop& loop, int fd, OnOpen on_open);
  ~Call() { Drop(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  void OnEvents();
  void End(int fd, wire::Code code);
  void Drop();

  Loop& loop_;
  int fd_;
  const OnOpen on_open_;
  std::string opening_;
  Loop::TimerId limit_ = 0;
};

}  // namespace sekisho::nxproxy::client
