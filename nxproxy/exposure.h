// SPDX-License-Identifier: Apache-2.0
// One line of `expose` and what it has become at the upstream: docs/protocol/10-nxproxy.md,
// "Several relays in a row".  Pure: time and chance come in.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "common/back_off.h"
#include "nxproxy/stream.h"
#include "nxproxy/wire/error.h"
#include "nxproxy/wire/message.h"

namespace sekisho::nxproxy {

struct Exposure {
  static constexpr BackOff kBackOff{std::chrono::milliseconds(500),
                                    std::chrono::seconds(10)};  // a port answers again within it

  std::string target;
  wire::Message bind;     // what is asked for
  uint64_t endpoint = 0;  // 0: not bound yet
  std::string secret;
  bool is_bound = false;   // in this session
  uint32_t asked = 0;      // the BIND without an answer; 0: none
  int64_t bind_at_ms = 0;  // not before: it was refused
  BackOff back_off = kBackOff;
  std::string refused;  // why, as the log has it
  std::shared_ptr<Traffic> traffic = std::make_shared<Traffic>();

  std::string Name() const { return target + " " + std::to_string(bind.port); }
  bool IsDue(int64_t now_ms) const { return !is_bound && asked == 0 && now_ms >= bind_at_ms; }

  // The BIND: for what was bound before, if it can be had again; else by `new_secret`, and again by
  // it until that is answered.
  wire::Message Ask(uint32_t id, const std::string& new_secret);
  void OnBound(const wire::Message& bound);
  // Whether an endpoint is given up by that; else the same is asked for again.
  bool OnRefused(wire::Code code, int64_t now_ms, uint64_t chance);
  // The control connection is.  Whether the session may hold an endpoint that we cannot name; an
  // upstream of before does not know it by its secret.
  bool OnLost();
};

}  // namespace sekisho::nxproxy
