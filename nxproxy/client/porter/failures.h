// SPDX-License-Identifier: Apache-2.0
// Why a connection through the relay failed.  The opening on it says a code; the words and the rule come by the
// control connection (FAILED), before or after.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "nxproxy/client/porter/loop.h"
#include "nxproxy/client/porter/session.h"

namespace sekisho::nxproxy::client {

class Failures {
 public:
  using Then = std::function<void(const Refusal&)>;

  explicit Failures(Loop& loop) : loop_(loop) {}

  void Take(const wire::Message& failed);
  // Of the connection with that counter; `code` alone if nothing else is told soon.
  void Explain(uint64_t counter, wire::Code code, Then then);

 private:
  Loop& loop_;
  std::map<uint64_t, Refusal> told_;
  std::map<uint64_t, Then> asked_;
};

}  // namespace sekisho::nxproxy::client
