// SPDX-License-Identifier: Apache-2.0
// What ended jobs have used, from the lines of a site's accounting: docs/operations/accounting.md.  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/status.h"

namespace sekisho::client {

struct UsageQuery {
  std::string by = "account";  // account, subject, project, queue, resource, day, month
  std::string since, until;    // "2026-11-01", or with a time "2026-11-01T12:00:00Z": of a job's end; "": any
};

// InvalidArgument, in words.
absl::Status CheckUsageQuery(const UsageQuery& query);

struct Usage {
  int64_t jobs = 0;
  int64_t done = 0;
  int64_t failed = 0;
  int64_t cancelled = 0;
  double processor_s = 0;
  double cpu_s = 0;
  double wait_s = 0;
  double max_rss_mb = 0;  // the largest
};

class UsageTotals {
 public:
  explicit UsageTotals(UsageQuery query) : query_(std::move(query)) {}

  // One line of the file.  InvalidArgument: it is none, and what was wrong.
  absl::Status Add(std::string_view line);

  std::string Table() const;
  nlohmann::ordered_json ToJson() const;
  const std::map<std::string, Usage>& rows() const { return rows_; }

 private:
  const UsageQuery query_;
  std::map<std::string, Usage> rows_;
};

}  // namespace sekisho::client
