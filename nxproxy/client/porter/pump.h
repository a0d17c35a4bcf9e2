// SPDX-License-Identifier: Apache-2.0
// Two connections joined on the user's machine, half-close and all.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nxproxy/client/porter/loop.h"

namespace sekisho::nxproxy::client {

class Pump {
 public:
  // Owns both descriptors, which do not block.  `on_end` may destroy it.
  Pump(Loop& loop, int one, int other, std::function<void()> on_end);
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

 private:
  struct Way {
    int from;
    int to;
    std::string waiting;
    bool is_ended = false;   // no more comes
    bool is_passed = false;  // and the far side was told
  };

  void Move();
  void End();
  bool Move(Way& way);  // false if the connection broke
  void Watch();

  Loop& loop_;
  const std::function<void()> on_end_;
  Way there_;
  Way back_;
};

// Standard input to `socket`, and back to standard output, until both ways have ended.  Blocks.  0,
// or errno.
int PumpStandard(int socket);

}  // namespace sekisho::nxproxy::client
