// SPDX-License-Identifier: Apache-2.0
#include "client/job/job_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/site/harmless.h"
#include "common/job_array.h"
#include "common/job_state.h"

namespace sekisho::client {
namespace {

// Whether a program of the job's ended and so gave it an exit code or a signal.
bool HasEnding(const proto::JobStatus& job) {
  const bool is_zero = job.exit().code() == 0 && job.exit().signal() == 0;
  return IsFinal(job.state()) && (job.state() == proto::DONE || !is_zero);
}

std::string Ending(const proto::JobStatus& job) {
  if (!HasEnding(job)) {
    return "-";
  }
  return job.exit().signal() != 0 ? fmt::format("signal {}", job.exit().signal())
                                  : std::to_string(job.exit().code());
}

// "12 running, 3 failed": what there is.
std::string ElementsText(const proto::ArrayStatus& array) {
  std::string text;
  for (const auto& [count, what] : {std::pair(array.waiting(), "waiting"), {array.running(), "running"},
                                    {array.suspended(), "suspended"}, {array.done(), "done"},
                                    {array.failed(), "failed"}, {array.cancelled(), "cancelled"}}) {
    if (count > 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
    }
  }
  return text;
}

std::string Name(const proto::JobStatus& job) { return job.site() + "/" + job.job_id(); }

nlohmann::json ToJson(const proto::OutputTo& to) {
  return {{"to", std::vector<std::string>(to.destination().begin(), to.destination().end())}, {"position", to.position()}};
}

constexpr int64_t kSoonMs = 20 * 60'000;

// "ends in 3 h"; what to do, if that is soon.
std::string CredentialText(const proto::JobStatus& job, int64_t now_ms) {
  const int64_t left_ms = job.credential_until_ms() - now_ms;
  const std::string when = left_ms > 0 ? fmt::format("ends in {}", Age(left_ms)) : fmt::format("ended {} ago", Age(-left_ms));
  return left_ms > kSoonMs ? when : fmt::format("{}: sekisho proxy refresh {} (-D: a full one)", when, Name(job));
}

}  // namespace

std::vector<std::string> Nodes(const proto::JobStatus& job) {
  std::vector<std::string> nodes;
  for (const auto& placement : job.placement()) {
    if (std::find(nodes.begin(), nodes.end(), placement.node()) == nodes.end()) {
      nodes.push_back(placement.node());
    }
  }
  return nodes;
}

std::string Age(int64_t milliseconds) {
  const int64_t seconds = std::max<int64_t>(0, milliseconds / 1000);
  if (seconds < 120) {
    return fmt::format("{} s", seconds);
  }
  if (seconds < 2 * 3600) {
    return fmt::format("{} min", seconds / 60);
  }
  return seconds < 48 * 3600 ? fmt::format("{} h", seconds / 3600) : fmt::format("{} d", seconds / 86400);
}

nlohmann::json ToJson(const proto::JobStatus& job) {
  nlohmann::json json;
  json["id"] = Name(job);
  json["site"] = job.site();
  json["state"] = StateName(job.state());
  json["state_code"] = GramState(job.state());
  json["reason"] = job.reason();
  json["remedy"] = job.remedy();
  json["exit_code"] = nullptr;
  json["signal"] = nullptr;
  if (HasEnding(job)) {
    if (job.exit().signal() != 0) {
      json["signal"] = job.exit().signal();
    } else {
      json["exit_code"] = job.exit().code();
    }
  }
  json["gram_code"] = job.gram_code();
  json["nodes"] = Nodes(job);
  json["resource"] = job.resource();
  json["queue"] = job.queue();
  json["service"] = job.service();
  json["subject"] = job.subject();
  json["account"] = job.account();
  json["request_id"] = job.request_id();
  json["executable"] = job.executable();
  json["count"] = job.count();
  json["rsl"] = job.rsl();
  json["cancelling"] = job.cancelling();
  json["is_held"] = job.is_held();
  json["after"] = std::vector<std::string>(job.after().begin(), job.after().end());
  json["credential_until_ms"] = job.credential_until_ms();
  json["submitted_ms"] = job.submitted_ms();
  json["started_ms"] = job.started_ms();
  json["ended_ms"] = job.ended_ms();
  if (job.has_standard_output()) {
    json["redirected"]["stdout"] = ToJson(job.standard_output());
  }
  if (job.has_standard_error()) {
    json["redirected"]["stderr"] = ToJson(job.standard_error());
  }
  if (job.has_array()) {
    const proto::ArrayStatus& array = job.array();
    json["array"] = {{"indices", ArrayText(array.what())}, {"elements", array.elements()},
                     {"waiting", array.waiting()},         {"running", array.running()},
                     {"suspended", array.suspended()},     {"done", array.done()},
                     {"failed", array.failed()},           {"cancelled", array.cancelled()}};
  }
  if (job.has_element()) {
    json["array_index"] = job.element().index();
  }
  json["tasks"] = nlohmann::json::array();
  for (const auto& task : job.task()) {
    nlohmann::json entry = {{"task", task.task()}, {"node", task.node()}, {"ended", task.ended()}};
    if (task.ended()) {
      entry["exit_code"] = task.exit().code();
      entry["signal"] = task.exit().signal();
    }
    json["tasks"].push_back(std::move(entry));
  }
  return json;
}

std::string Columns(std::vector<std::vector<std::string>> rows) {
  for (auto& row : rows) {
    std::transform(row.begin(), row.end(), row.begin(), Harmless);
  }
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], widths[i]) : row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string Table(const std::vector<proto::JobStatus>& jobs, int64_t now_ms) {
  std::vector<std::vector<std::string>> rows = {{"JOB", "STATE", "EXIT", "TASKS", "NODES", "AGE", "PROGRAM"}};
  for (const auto& job : jobs) {
    const auto nodes = Nodes(job);
    const std::string tasks = job.has_array() ? fmt::format("{}x{}", job.array().elements(), job.count())
                                              : std::to_string(job.count());
    rows.push_back({Name(job), StateName(job.state()), Ending(job), tasks,
                    nodes.empty() ? "-" : fmt::format("{}", fmt::join(nodes, ",")),
                    job.submitted_ms() == 0 ? "-" : Age(now_ms - job.submitted_ms()),
                    job.executable().empty() ? "-" : job.executable()});
  }
  return Columns(rows);
}

std::string Describe(const proto::JobStatus& job, int64_t now_ms) {
  std::string text;
  const auto add = [&text](const char* name, const std::string& value) {
    if (!value.empty()) {
      text += fmt::format("{:<10} {}\n", name, Harmless(value));
    }
  };
  add("job", Name(job));
  add("state", StateName(job.state()) + (job.cancelling() && !IsFinal(job.state()) ? " (cancelling)" : ""));
  if (job.has_array()) {
    add("array", fmt::format("{}: {}", ArrayText(job.array().what()), ElementsText(job.array())));
  }
  add(IsFinal(job.state()) || job.state() == proto::UNKNOWN ? "reason" : "waits", job.reason());
  add("remedy", job.remedy());
  if (HasEnding(job)) {
    add("exit", Ending(job));
  }
  if (job.gram_code() != 0) {
    add("GRAM code", std::to_string(job.gram_code()));
  }
  if (job.submitted_ms() != 0) {
    add("submitted", Age(now_ms - job.submitted_ms()) + " ago");
  }
  if (job.started_ms() != 0 && job.ended_ms() != 0) {
    add("ran", fmt::format("{:.3f} s", static_cast<double>(job.ended_ms() - job.started_ms()) / 1000));
  }
  if (job.credential_until_ms() != 0 && !IsFinal(job.state())) {
    add("credential", CredentialText(job, now_ms));
  }
  add("account", job.account());
  add("program", job.executable());
  if (job.count() > 0) {
    add("processes", std::to_string(job.count()));
  }
  add("resource", job.resource());
  add("nodes", fmt::format("{}", fmt::join(Nodes(job), " ")));
  for (const auto& task : job.task()) {
    if (task.ended() && (task.exit().code() != 0 || task.exit().signal() != 0)) {
      add("task", task.exit().signal() != 0
                      ? fmt::format("{} on {}: signal {}", task.task(), task.node(), task.exit().signal())
                      : fmt::format("{} on {}: exit code {}", task.task(), task.node(), task.exit().code()));
    }
  }
  return text;
}

}  // namespace sekisho::client
