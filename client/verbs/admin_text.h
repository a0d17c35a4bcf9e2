// SPDX-License-Identifier: Apache-2.0
// What `sekisho admin` prints.  Pure.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "proto/job.pb.h"

namespace sekisho::client {

// up, down, draining (something runs there), drained.
std::string NodeStateName(const proto::NodeInfo& node);

std::string AdminNodesTable(const proto::SiteInfo& site);
nlohmann::json AdminNodesJson(const proto::SiteInfo& site);

std::string BansTable(const proto::AdministerReply& all);
nlohmann::json BansJson(const proto::AdministerReply& all);

}  // namespace sekisho::client
