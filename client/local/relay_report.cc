// SPDX-License-Identifier: Apache-2.0
#include "client/local/relay_report.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sekisho::client {
namespace {

struct Row {
  std::string endpoint;
  std::string inside;
  std::string scope;
  std::string owner;
  std::string job;
  uint64_t streams = 0;
  uint64_t bytes = 0;
  double rate = -1;  // bytes per second; -1: not known
};

// Reports, one a line, as one.
nlohmann::json Join(const std::string& text) {
  nlohmann::json whole;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("endpoints") || !json["endpoints"].is_array()) {
      return {};
    }
    for (nlohmann::json& row : json["endpoints"]) {
      if (whole.is_object()) {
        whole["endpoints"].push_back(std::move(row));
      }
    }
    if (!whole.is_object()) {
      whole = std::move(json);
    }
    whole["whole"] = true;
  }
  return whole;
}

bool ParseReport(const std::string& text, std::vector<Row>& rows) {
  const nlohmann::json json = Join(text);
  if (!json.is_object()) {
    return false;
  }
  for (const nlohmann::json& one : json["endpoints"]) {
    const auto text_of = [&](const char* key) {
      return one.contains(key) && one[key].is_string() ? one[key].get<std::string>()
                                                       : std::string();
    };
    const auto number_of = [&](const char* key) {
      return one.contains(key) && one[key].is_number_unsigned() ? one[key].get<uint64_t>() : 0;
    };
    rows.push_back({text_of("endpoint"), text_of("inside"), text_of("scope"), text_of("owner"),
                    text_of("job"), number_of("streams"), number_of("bytes")});
  }
  return true;
}

}  // namespace

std::string JoinReports(const std::string& text) {
  return Join(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string RelayTable(const std::string& report, const std::string& before, double seconds,
                       std::string& error) {
  std::vector<Row> rows;
  std::vector<Row> old;
  if (!ParseReport(report, rows) || (!before.empty() && !ParseReport(before, old))) {
    error = "the relay's report cannot be read";
    return "";
  }
  std::map<std::string, uint64_t> old_bytes;
  for (const Row& row : old) {
    old_bytes[row.endpoint] = row.bytes;
  }
  for (Row& row : rows) {
    if (const auto found = old_bytes.find(row.endpoint); found != old_bytes.end() && seconds > 0) {
      row.rate = static_cast<double>(row.bytes - std::min(found->second, row.bytes)) / seconds;
    }
  }
  if (!before.empty()) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& one, const Row& other) { return one.rate > other.rate; });
  }
  std::string table =
      fmt::format("{:<24} {:<22} {:<7} {:>7} {:>14} {}{:<16} {}\n", "ENDPOINT", "INSIDE", "SCOPE",
                  "STREAMS", "BYTES", before.empty() ? "" : "     BYTES/S ", "JOB", "OWNER");
  for (const Row& row : rows) {
    const std::string rate =
        before.empty() ? "" : fmt::format("{:>12.0f} ", std::max(row.rate, 0.0));
    table += fmt::format("{:<24} {:<22} {:<7} {:>7} {:>14} {}{:<16} {}\n", row.endpoint, row.inside,
                         row.scope, row.streams, row.bytes, rate, row.job.empty() ? "-" : row.job,
                         row.owner);
  }
  return table;
}

}  // namespace sekisho::client
