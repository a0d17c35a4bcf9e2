// SPDX-License-Identifier: Apache-2.0
// The site's firewall rules, for nftables: everything inbound is dropped but the one pinhole. Pure.
#pragma once

#include <string>

#include "common/status.h"
#include "qserver/config.pb.h"

namespace sekisho::qserver {

// FailedPrecondition if the configuration does not say the addresses.
absl::StatusOr<std::string> FirewallRules(const Config& config);

}  // namespace sekisho::qserver
