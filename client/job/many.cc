// SPDX-License-Identifier: Apache-2.0
#include "client/job/many.h"

#include <algorithm>
#include <iostream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/job/submitted.h"
#include "client/site/exit_code.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "client/site/until_judged.h"
#include "common/job_state.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

constexpr size_t kJobsOfARequest = 1'000;
constexpr size_t kBytesOfARequest = 2 << 20;  // of the 4 MiB that a message may have
constexpr size_t kStatusesOfARequest = 2'000;
constexpr size_t kWithRsl = 100;  // an RSL is read from disk there: not of more

absl::Status StatusOf(const proto::ManyReply::Each& each) {
  return each.is_refused()
             ? Refuse(absl::StatusCode(each.code()), each.gram_code(), each.message(), each.remedy())
             : absl::OkStatus();
}

absl::Status AnotherAnswer() {
  return Refuse(absl::StatusCode::kInternal, 0, "the site answered another question",
                "what was done is in `sekisho list`; tell the site's administrators both versions: "
                "sekisho --version, sekisho sites SITE");
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

awaitable<int> SubmitMany(Session& session, const std::vector<OneOfFile>& jobs, const ManyOptions& options,
                          std::vector<Submitted>& submitted) {
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
    Signed same = [&request] { return *request; };  // so that each job is made once
    const auto reply = co_await AskUntilJudged(session, &Session::Async::SubmitMany, std::move(same), kSubmitPatience);
    if (!reply.ok()) {
      co_return Report(IsUnjudged(reply.status()) ? StillUnknown(reply.status(), request_id) : reply.status());
    }
    if (reply->each_size() != int(end - begin)) {
      co_return Report(AnotherAnswer());
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
        submitted.push_back({each.job_id(), begin + size_t(i)});
      }
    }
    begin = end;
  }
  std::fflush(stdout);
  co_return exit_code;
}

awaitable<Codes> WaitForAll(Session& session, std::vector<std::string> ids, std::chrono::seconds patience,
                            std::function<void(const proto::JobStatus&)> changed) {
  std::map<std::string, proto::JobStatus> known;
  const auto is_over = [&known](const std::string& id) {
    const auto at = known.find(id);
    return at != known.end() && (IsFinal(at->second.state()) || at->second.state() == proto::UNKNOWN);
  };
  Outage outage(patience);
  absl::Status lost;
  while (lost.ok()) {
    proto::StatusRequest request;
    for (const std::string& id : ids) {
      if (!is_over(id)) {
        request.add_job_id(id);
      }
    }
    if (request.job_id_size() == 0) {
      break;
    }
    const std::string what = request.job_id_size() == 1
                                 ? JobName(session.target(), session.target().site, request.job_id(0))
                                 : fmt::format("each of {} jobs", request.job_id_size());
    auto updates = rpc::Start<rpc::ClientReader<proto::StatusReply>>(
        session.loop(), session.Options(),
        [&](auto& call) { session.stub().async()->Watch(&call.context(), &request, &call); });
    proto::StatusReply reply;
    while (co_await updates->Read(reply)) {
      outage.End();
      for (const proto::JobStatus& job : reply.job()) {
        known[job.job_id()] = job;
        if (changed) {
          changed(job);
        }
      }
    }
    const absl::Status status = co_await updates->Finish();
    if (!status.ok() && status.code() != absl::StatusCode::kUnavailable) {
      co_return Codes(ids.size(), Report(status));
    }
    if (!status.ok()) {  // the link is lost, the jobs are not
      if (outage.Begin(Outage::Clock::now())) {
        SayLost(what, patience);
      }
      lost = co_await ReachAgain(session, outage, status);
    }
  }
  if (!lost.ok()) {
    Report(NotReachedAgain("the jobs", lost, "wait again"));
  }
  Codes codes;
  for (const std::string& id : ids) {
    codes.push_back(is_over(id) ? ExitCodeOf(known[id]) : kExitUnknown);
    if (is_over(id) && codes.back() != 0) {
      std::cerr << EndText(known[id]);
    }
  }
  co_return codes;
}

awaitable<absl::StatusOr<std::vector<proto::JobStatus>>> StatusOfAll(Session& session, std::vector<std::string> ids) {
  std::vector<proto::JobStatus> jobs;
  for (size_t begin = 0; begin < ids.size(); begin += kStatusesOfARequest) {
    proto::StatusRequest request;
    request.set_without_rsl(ids.size() > kWithRsl);
    for (size_t i = begin; i < std::min(ids.size(), begin + kStatusesOfARequest); ++i) {
      request.add_job_id(ids[i]);
    }
    CO_ASSIGN_OR_RETURN(auto reply, (co_await Query<proto::StatusRequest, proto::StatusReply>(
                                        session, &Session::Async::Status, request)));
    if (reply.job_size() != request.job_id_size()) {
      co_return AnotherAnswer();
    }
    for (proto::JobStatus& job : *reply.mutable_job()) {
      if (job.site().empty()) {
        job.set_site(session.target().site);
      }
      if (job.state() == proto::UNKNOWN && job.reason().empty()) {
        job.set_reason("the site knows no such job of yours");
      }
      jobs.push_back(std::move(job));
    }
  }
  co_return jobs;
}

awaitable<Codes> SignalAll(Session& session, std::vector<std::string> ids, int number, std::string argument) {
  proto::RequestBody body;
  body.mutable_command_many()->set_number(number);
  body.mutable_command_many()->set_argument(argument);
  body.mutable_command_many()->mutable_job_id()->Assign(ids.begin(), ids.end());
  Signed anew = [&session, &body] { return session.Sign(body); };
  const auto reply = co_await AskUntilJudged(session, &Session::Async::CommandMany, std::move(anew), kCommandPatience);
  if (!reply.ok()) {
    co_return Codes(ids.size(), Report(reply.status()));
  }
  if (reply->each_size() != int(ids.size())) {
    co_return Codes(ids.size(), Report(AnotherAnswer()));
  }
  Codes codes;
  for (const proto::ManyReply::Each& each : reply->each()) {
    codes.push_back(each.is_refused() ? Report(StatusOf(each)) : 0);
  }
  co_return codes;
}

int FirstBad(const Codes& codes) {
  const auto bad = std::find_if(codes.begin(), codes.end(), [](int code) { return code != 0; });
  return bad == codes.end() ? 0 : *bad;
}

}  // namespace sekisho::client
