// SPDX-License-Identifier: Apache-2.0
#include "client/verbs/usage.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/job/job_text.h"

namespace sekisho::client {
namespace {

constexpr std::array<std::string_view, 7> kKeys = {"account", "subject",  "project", "queue",
                                                   "resource", "day", "month"};

constexpr size_t kToSecond = 19;  // of a time's text

// "2026-11-01" or "2026-11-01T12:00:00Z", the beginnings of which compare as times do.
bool IsTime(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00Z";
  if (text.size() != 10 && text.size() != kShape.size()) {
    return false;
  }
  return std::equal(text.begin(), text.end(), kShape.begin(), [](char c, char shape) {
    return shape == '0' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : c == shape;
  });
}

// One hour is 1.0; a tenth of a second shows in seconds only.
std::string Hours(double seconds) { return fmt::format("{:.2f}", seconds / 3600); }

std::string KeyOf(const nlohmann::json& job, const std::string& by) {
  if (by == "day" || by == "month") {
    return job.at("ended").get<std::string>().substr(0, by == "day" ? 10 : 7);
  }
  const std::string key = job.at(by).get<std::string>();
  return key.empty() ? "-" : key;
}

std::vector<std::string> Row(const std::string& name, const Usage& usage) {
  return {name,
          std::to_string(usage.jobs),
          std::to_string(usage.done),
          std::to_string(usage.failed),
          std::to_string(usage.cancelled),
          Hours(usage.processor_s),
          Hours(usage.cpu_s),
          fmt::format("{:.0f} s", usage.jobs > 0 ? usage.wait_s / double(usage.jobs) : 0),
          fmt::format("{:.0f}", usage.max_rss_mb)};
}

void Add(const Usage& more, Usage& sum) {
  sum.jobs += more.jobs;
  sum.done += more.done;
  sum.failed += more.failed;
  sum.cancelled += more.cancelled;
  sum.processor_s += more.processor_s;
  sum.cpu_s += more.cpu_s;
  sum.wait_s += more.wait_s;
  sum.max_rss_mb = std::max(sum.max_rss_mb, more.max_rss_mb);
}

nlohmann::ordered_json Json(const Usage& usage) {
  return {{"jobs", usage.jobs},
          {"done", usage.done},
          {"failed", usage.failed},
          {"cancelled", usage.cancelled},
          {"processor_s", usage.processor_s},
          {"cpu_s", usage.cpu_s},
          {"wait_s", usage.wait_s},
          {"max_rss_mb", usage.max_rss_mb}};
}

}  // namespace

absl::Status CheckUsageQuery(const UsageQuery& query) {
  if (std::find(kKeys.begin(), kKeys.end(), query.by) == kKeys.end()) {
    return absl::InvalidArgumentError(
        fmt::format("--by: expected one of {}, not '{}'", fmt::join(kKeys, ", "), query.by));
  }
  for (const auto& [option, time] : {std::pair("--since", &query.since), std::pair("--until", &query.until)}) {
    if (!time->empty() && !IsTime(*time)) {
      return absl::InvalidArgumentError(
          fmt::format("{}: expected YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ, not '{}'", option, *time));
    }
  }
  return absl::OkStatus();
}

absl::Status UsageTotals::Add(std::string_view line) {
  try {
    const auto job = nlohmann::json::parse(line);
    const std::string ended = job.at("ended").get<std::string>().substr(0, kToSecond);
    if (ended < query_.since.substr(0, kToSecond) ||
        (!query_.until.empty() && ended >= query_.until.substr(0, kToSecond))) {
      return absl::OkStatus();
    }
    const std::string state = job.at("state").get<std::string>();
    Usage usage{.jobs = 1,
                .done = state == "DONE" ? 1 : 0,
                .failed = state == "FAILED" ? 1 : 0,
                .cancelled = state == "CANCELLED" ? 1 : 0,
                .processor_s = job.at("processor_s").get<double>(),
                .cpu_s = job.at("cpu_s").get<double>(),
                .wait_s = job.at("wait_s").get<double>(),
                .max_rss_mb = job.at("max_rss_mb").get<double>()};
    client::Add(usage, rows_[KeyOf(job, query_.by)]);
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return absl::OkStatus();
}

std::string UsageTotals::Table() const {
  std::string title = query_.by;
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  std::vector<std::vector<std::string>> rows = {
      {title, "JOBS", "DONE", "FAILED", "CANCELLED", "PROCESSOR-H", "CPU-H", "MEAN WAIT", "MAX MB"}};
  Usage sum;
  for (const auto& [name, usage] : rows_) {
    rows.push_back(Row(name, usage));
    client::Add(usage, sum);
  }
  if (rows_.size() != 1) {
    rows.push_back(Row("all", sum));
  }
  return Columns(rows);
}

nlohmann::ordered_json UsageTotals::ToJson() const {
  nlohmann::ordered_json json = {{"by", query_.by}, {"since", query_.since}, {"until", query_.until}};
  Usage sum;
  json["rows"] = nlohmann::ordered_json::array();
  for (const auto& [name, usage] : rows_) {
    nlohmann::ordered_json row = Json(usage);
    row[query_.by] = name;
    json["rows"].push_back(std::move(row));
    client::Add(usage, sum);
  }
  json["all"] = Json(sum);
  return json;
}

}  // namespace sekisho::client
