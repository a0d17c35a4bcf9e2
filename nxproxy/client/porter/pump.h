// SPDX-License-Identifier: Apache-2.0
// Two ends joined on this host, half-close and all.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nxproxy/client/porter/channel.h"
#include "nxproxy/client/porter/loop.h"

namespace sekisho::nxproxy::client {

class Pump {
 public:
  // `on_end` may destroy it.
  Pump(Loop& loop, std::unique_ptr<Channel> one, std::unique_ptr<Channel> other,
       std::function<void()> on_end);
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

 private:
  struct Way {
    Channel& from;
    Channel& to;
    std::string waiting = {};  // read, and not written yet
    bool is_ended = false;     // no more comes
    bool is_passed = false;    // and the far side was told
  };
  enum class Moved { kAll, kMore, kBroken };  // kMore: let others have their turn

  void Move();
  void End();
  static Moved Move(Way& way);
  static bool Step(Way& way, bool& has_moved);  // false if the connection broke
  void Watch();

  Loop& loop_;
  const std::unique_ptr<Channel> one_;
  const std::unique_ptr<Channel> other_;
  const std::function<void()> on_end_;
  Way there_;
  Way back_;
  Loop::TimerId again_ = 0;
};

// Standard input to `channel`, and back to standard output, until both ways have ended.  Blocks.  0,
// or errno.
int PumpStandard(Channel& channel);

}  // namespace sekisho::nxproxy::client
