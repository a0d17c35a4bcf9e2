// SPDX-License-Identifier: Apache-2.0
#include "client/verbs/admin_text.h"

#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "client/job/job_text.h"
#include "client/site/harmless.h"

namespace sekisho::client {
namespace {

std::string Since(int64_t ms) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t(ms / 1000))); }

}  // namespace

std::string NodeStateName(const proto::NodeInfo& node) {
  if (!node.is_up()) {
    return "down";
  }
  return node.drained().empty() ? "up" : node.busy() > 0 ? "draining" : "drained";
}

std::string AdminNodesTable(const proto::SiteInfo& site) {
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "RESOURCE", "STATE", "BUSY/SLOTS", "LOAD", "VERSION", "REASON"}};
  for (const proto::NodeInfo& node : site.node()) {
    rows.push_back({node.name(), node.resource(), NodeStateName(node),
                    fmt::format("{}/{}", node.busy(), node.processors()), fmt::format("{:.2f}", node.load()),
                    node.version().empty() ? "-" : node.version(), Harmless(node.drained())});
  }
  return Columns(rows);
}

nlohmann::json AdminNodesJson(const proto::SiteInfo& site) {
  nlohmann::json nodes = nlohmann::json::array();
  for (const proto::NodeInfo& node : site.node()) {
    nodes.push_back({{"name", node.name()},
                     {"resource", node.resource()},
                     {"state", NodeStateName(node)},
                     {"processors", node.processors()},
                     {"busy", node.busy()},
                     {"load", node.load()},
                     {"version", node.version()},
                     {"drained", node.drained()}});
  }
  return {{"site", site.site()}, {"drained", site.drained()}, {"nodes", nodes}};
}

std::string BansTable(const proto::AdministerReply& all) {
  std::vector<std::vector<std::string>> rows = {{"SINCE", "SUBJECT", "BY", "REASON"}};
  for (const auto& banned : all.banned()) {
    rows.push_back({Since(banned.since_ms()), Harmless(banned.subject()), Harmless(banned.by()), Harmless(banned.reason())});
  }
  return Columns(rows);
}

nlohmann::json BansJson(const proto::AdministerReply& all) {
  nlohmann::json bans = nlohmann::json::array();
  for (const auto& banned : all.banned()) {
    bans.push_back({{"subject", banned.subject()},
                    {"reason", banned.reason()},
                    {"by", banned.by()},
                    {"since", Since(banned.since_ms())}});
  }
  return bans;
}

}  // namespace sekisho::client
