// SPDX-License-Identifier: Apache-2.0
// May this caller use this service, and as which account?  Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "gatekeeper/config.pb.h"

namespace sekisho::gatekeeper {

struct Caller {
  std::string subject;
  bool is_limited = false;
  std::vector<std::string> accounts;  // as the map has them; the first is the default
  bool is_leader = false;             // of the subject's multi-site program, by a passage
};

struct Asked {
  std::string service;  // of the contact; empty: "jobmanager"
  std::string account;  // empty: the default
};

struct Grant {
  std::string account;
  std::string service;  // as asked
  std::string queue;    // empty: none named
};

absl::StatusOr<Grant> Decide(const Config& config, const Caller& caller, const Asked& asked);

// The configured services, or the default ones.
std::vector<Config::Service> Services(const Config& config);

// Whom to ask for a mapping.
std::string Administrator(const Config& config);

}  // namespace sekisho::gatekeeper
