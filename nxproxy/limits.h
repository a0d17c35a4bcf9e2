// SPDX-License-Identifier: Apache-2.0
// The limits of config.proto with their defaults filled in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nxproxy/config.pb.h"

namespace sekisho::nxproxy {

struct Limits {
  int64_t greeting_ms = 5000;
  size_t unfinished = 1024;
  size_t unfinished_per_peer = 256;
  int64_t grace_s = 120;
  int64_t pending_s = 15;
  int64_t connect_ms = 5000;
  int user_timeout_s = 600;
  uint64_t hops = 4;
  size_t spares = 32;
  int64_t token_life_s = 86400;
  int64_t token_tolerance_s = 60;
  size_t endpoints = 64;
  size_t streams = 4096;
  size_t sessions = 256;
  size_t pending = 256;
  int64_t bytes_per_s = 0;
  int64_t heartbeat_s = 20;
  uint16_t job_port_first = 40000;
  uint16_t job_port_last = 65535;
  int64_t drain_s = 8;
};

template <typename Value, typename Given>
void Set(Value& value, Given given) {
  if (given > 0) {
    value = static_cast<Value>(given);
  }
}

inline Limits LimitsOf(const Config::Limits& given) {
  Limits limits;
  Set(limits.greeting_ms, given.greeting_ms());
  Set(limits.unfinished, given.unfinished());
  Set(limits.unfinished_per_peer, given.unfinished_per_peer());
  Set(limits.grace_s, given.grace_s());
  Set(limits.pending_s, given.pending_s());
  Set(limits.connect_ms, given.connect_ms());
  Set(limits.user_timeout_s, given.user_timeout_s());
  Set(limits.hops, given.hops());
  Set(limits.spares, given.spares());
  Set(limits.token_life_s, given.token_life_s());
  Set(limits.token_tolerance_s, given.token_tolerance_s());
  Set(limits.endpoints, given.endpoints());
  Set(limits.streams, given.streams());
  Set(limits.sessions, given.sessions());
  Set(limits.pending, given.pending());
  Set(limits.bytes_per_s, given.bytes_per_s());
  Set(limits.heartbeat_s, given.heartbeat_s());
  Set(limits.job_port_first, given.job_port_first());
  Set(limits.job_port_last, given.job_port_last());
  Set(limits.drain_s, given.drain_s());
  return limits;
}

}  // namespace sekisho::nxproxy
