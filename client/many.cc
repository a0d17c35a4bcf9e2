// SPDX-License-Identifier: Apache-2.0
#include "client/many.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/elements.h"
#include "client/exit_code.h"
#include "client/harmless.h"
#include "client/site_call.h"
#include "client/staged_files.h"
#include "common/job_state.h"
#include "rsl/check.h"

namespace sekisho::client {
namespace {

constexpr size_t kJobsOfARequest = 1'000;
constexpr size_t kBytesOfARequest = 2 << 20;  // of the 4 MiB that a message may have
constexpr size_t kStatusesOfARequest = 2'000;
constexpr size_t kWithRsl = 100;  // an RSL is read from disk there: not of more
constexpr std::chrono::seconds kPatience{300};
constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::milliseconds kLongestPause{5'000};

absl::Status StatusOf(const proto::ManyReply::Each& each) {
  return each.is_refused()
             ? Refuse(absl::StatusCode(each.code()), each.gram_code(), each.message(), each.remedy())
             : absl::OkStatus();
}

using ManyMethod = void (Session::Async::*)(grpc::ClientContext*, const proto::SignedRequest*, proto::ManyReply*,
                                            std::function<void(grpc::Status)>);

// The same signed request again and again, until somebody has judged it: it makes each job once.
awaitable<absl::StatusOr<proto::ManyReply>> Ask(Session& session, ManyMethod method, proto::SignedRequest request) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  bool has_link = true;
  for (std::chrono::milliseconds pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    absl::StatusOr<proto::ManyReply> reply = absl::UnavailableError("no connection");
    if (has_link) {
      reply = co_await session.Call<proto::SignedRequest, proto::ManyReply>(method, request);
    }
    const bool is_judged = reply.ok() || reply.status().code() != absl::StatusCode::kUnavailable;
    if (is_judged || std::chrono::steady_clock::now() > until) {
      co_return reply;
    }
    co_await Sleep(session.loop(), pause);
    const absl::Status opened = co_await session.OpenAgain();
    has_link = opened.ok();
    if (!has_link && opened.code() != absl::StatusCode::kUnavailable) {
      co_return opened;
    }
  }
}

// Each request's jobs: as many as fit.
std::vector<size_t> Cut(const std::vector<OneOfFile>& jobs) {
  std::vector<size_t> ends;
  size_t bytes = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const size_t begun = ends.empty() ? 0 : ends.back();
    if (i > begun && (i - begun == kJobsOfARequest || bytes + jobs[i].rsl.size() > kBytesOfARequest)) {
      ends.push_back(i);
      bytes = 0;
    }
    bytes += jobs[i].rsl.size();
  }
  ends.push_back(jobs.size());
  return ends;
}

}  // namespace

absl::StatusOr<std::vector<OneOfFile>> ParseMany(const std::string& text, const std::string& name) {
  std::vector<OneOfFile> jobs;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') {
      continue;
    }
    const rsl::CheckReport checked = rsl::Check(line);
    if (checked.error) {
      return absl::InvalidArgumentError(fmt::format("{}:{}: {}", name, number, checked.error->ToString()));
    }
    if (checked.jobs.size() != 1 || checked.jobs[0].part) {
      return absl::InvalidArgumentError(fmt::format("{}:{}: expected one job, saw a multi-request (+)", name, number));
    }
    if (const auto files = StagedSources(checked.jobs[0]); !files.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: expected a job without files of this machine, saw {}: submit it without --many", name, number,
                      files[0].url));
    }
    jobs.push_back({line, number});
  }
  if (jobs.empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: expected a request (RSL) on each line, saw none", name));
  }
  return jobs;
}

absl::StatusOr<std::vector<OneOfFile>> ReadMany(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return ParseMany(text.str(), "standard input");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file || !(text << file.rdbuf())) {
    return absl::InvalidArgumentError(fmt::format("{}: cannot read it", path));
  }
  return ParseMany(text.str(), path);
}

awaitable<int> SubmitMany(Session& session, const std::vector<OneOfFile>& jobs, const ManyOptions& options,
                          std::vector<std::string>& ids) {
  const std::string request_id = options.request_id.empty() ? NewRequestId() : options.request_id;
  int exit_code = 0;
  size_t begin = 0;
  for (const size_t end : Cut(jobs)) {
    proto::RequestBody body;
    body.set_request_id(begin == 0 ? request_id : fmt::format("{}-{}", request_id, begin));
    for (size_t i = begin; i < end; ++i) {
      body.mutable_submit_many()->add_job()->set_rsl(jobs[i].rsl);
    }
    auto request = session.Sign(std::move(body));
    if (!request.ok()) {
      co_return Report(request.status());
    }
    const auto reply = co_await Ask(session, &Session::Async::SubmitMany, *std::move(request));
    if (!reply.ok()) {
      co_return Report(reply.status());
    }
    if (reply->each_size() != int(end - begin)) {
      co_return Report(absl::InternalError("the site answered another question"));
    }
    for (int i = 0; i < reply->each_size(); ++i) {
      const proto::ManyReply::Each& each = reply->each(i);
      const std::string name = JobName(session.target(), session.target().site, each.job_id());
      if (each.is_refused()) {
        fmt::print(stderr, "{}:{}: {}", options.file, jobs[begin + size_t(i)].line, ErrorText(StatusOf(each)));
        exit_code = exit_code != 0 ? exit_code : ExitCodeOf(StatusOf(each));
      } else if (options.is_json) {
        fmt::print("{}\n", nlohmann::json({{"id", name}, {"line", jobs[begin + size_t(i)].line},
                                           {"is_repeat", each.is_repeat()}}).dump());
      } else if (!options.is_quiet) {
        fmt::print("{}\n", Harmless(name));
      }
      if (!each.is_refused()) {
        ids.push_back(each.job_id());
      }
    }
    begin = end;
  }
  std::fflush(stdout);
  co_return exit_code;
}

awaitable<int> WaitForAll(Session& session, std::vector<std::string> ids,
                          std::function<void(const proto::JobStatus&)> changed) {
  std::map<std::string, proto::JobStatus> known;
  absl::Status status;
  const auto is_over = [&known](const std::string& id) {
    const auto at = known.find(id);
    return at != known.end() && (IsFinal(at->second.state()) || at->second.state() == proto::UNKNOWN);
  };
  auto until = std::chrono::steady_clock::now() + kPatience;
  for (std::chrono::milliseconds pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    proto::StatusRequest request;
    for (const std::string& id : ids) {
      if (!is_over(id)) {
        request.add_job_id(id);
      }
    }
    if (request.job_id_size() == 0) {
      break;
    }
    auto updates = rpc::Start<rpc::ClientReader<proto::StatusReply>>(
        session.loop(), session.Options(),
        [&](auto& call) { session.stub().async()->Watch(&call.context(), &request, &call); });
    proto::StatusReply reply;
    while (co_await updates->Read(reply)) {
      pause = kFirstPause;
      until = std::chrono::steady_clock::now() + kPatience;
      for (const proto::JobStatus& job : reply.job()) {
        known[job.job_id()] = job;
        if (changed) {
          changed(job);
        }
      }
    }
    status = co_await updates->Finish();
    if (!status.ok() && (status.code() != absl::StatusCode::kUnavailable || std::chrono::steady_clock::now() > until)) {
      co_return Report(status);
    }
    if (!status.ok()) {  // the link is lost, the jobs are not
      co_await Sleep(session.loop(), pause);
      const absl::Status opened = co_await session.OpenAgain();
      if (!opened.ok() && opened.code() != absl::StatusCode::kUnavailable) {
        co_return Report(opened);
      }
    }
  }
  int exit_code = 0;
  for (const std::string& id : ids) {
    const int code = ExitCodeOf(known[id]);
    if (code != 0) {
      std::cerr << EndText(known[id]);
    }
    exit_code = exit_code != 0 ? exit_code : code;
  }
  co_return exit_code;
}

awaitable<absl::StatusOr<std::vector<proto::JobStatus>>> StatusOfAll(Session& session, std::vector<std::string> ids) {
  std::vector<proto::JobStatus> jobs;
  for (size_t begin = 0; begin < ids.size(); begin += kStatusesOfARequest) {
    proto::StatusRequest request;
    request.set_without_rsl(ids.size() > kWithRsl);
    for (size_t i = begin; i < std::min(ids.size(), begin + kStatusesOfARequest); ++i) {
      request.add_job_id(ids[i]);
    }
    CO_ASSIGN_OR_RETURN(auto reply, (co_await session.Call<proto::StatusRequest, proto::StatusReply>(
                                        &Session::Async::Status, request)));
    for (proto::JobStatus& job : *reply.mutable_job()) {
      if (job.site().empty()) {  // the site knows no such job
        job.set_site(session.target().site);
      }
      jobs.push_back(std::move(job));
    }
  }
  co_return jobs;
}

awaitable<int> SignalAll(Session& session, std::vector<std::string> ids, int number, const std::string& argument) {
  proto::RequestBody body;
  body.mutable_command_many()->set_number(number);
  body.mutable_command_many()->set_argument(argument);
  body.mutable_command_many()->mutable_job_id()->Assign(ids.begin(), ids.end());
  auto request = session.Sign(std::move(body));
  if (!request.ok()) {
    co_return Report(request.status());
  }
  const auto reply = co_await Ask(session, &Session::Async::CommandMany, *std::move(request));
  if (!reply.ok()) {
    co_return Report(reply.status());
  }
  int exit_code = 0;
  for (const proto::ManyReply::Each& each : reply->each()) {
    const int code = each.is_refused() ? Report(StatusOf(each)) : 0;
    exit_code = exit_code != 0 ? exit_code : code;
  }
  co_return exit_code;
}

int ForEachSite(const std::vector<std::string>& jobs,
                const std::function<awaitable<int>(Session&, std::vector<std::string>)>& ask) {
  const auto sites = Sites::Load();
  if (!sites.ok()) {
    return Report(sites.status());
  }
  const auto names = ExpandElements(jobs);
  if (!names.ok()) {
    return Report(names.status());
  }
  std::vector<std::pair<Target, std::vector<std::string>>> by_site;
  for (const std::string& name : *names) {
    const auto job = sites->ResolveJob(name);
    if (!job.ok()) {
      return Report(job.status());
    }
    const auto at = std::find_if(by_site.begin(), by_site.end(), [&](const auto& entry) {
      return entry.first.contact.Address() == job->target.contact.Address() && entry.first.site == job->target.site;
    });
    if (at == by_site.end()) {
      by_site.emplace_back(job->target, std::vector<std::string>{job->id});
    } else {
      at->second.push_back(job->id);
    }
  }
  int exit_code = 0;
  for (const auto& [target, ids] : by_site) {
    const int code = WithTarget(target, [&ask, &ids = ids](Session& session) { return ask(session, ids); });
    exit_code = exit_code != 0 ? exit_code : code;
  }
  return exit_code;
}

}  // namespace sekisho::client
