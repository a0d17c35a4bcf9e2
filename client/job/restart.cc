// SPDX-License-Identifier: Apache-2.0
#include "client/job/restart.h"

#include <algorithm>

#include <fmt/format.h>

#include "client/job/commit.h"
#include "client/job/follow.h"
#include "client/job/job_files.h"
#include "client/job/look_up.h"
#include "client/job/redirect.h"
#include "client/site/any_site.h"
#include "client/site/exit_code.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "common/job_state.h"
#include "common/refusal.h"
#include "rsl/gram_errors.h"
#include "rsl/outgoing.h"

namespace sekisho::client {
namespace {

namespace gram = rsl::gram;

constexpr Patience kCommitPatience{.reopens = true};

absl::Status RestartFailed(const std::string& why, const std::string& remedy) {
  return Refuse(absl::StatusCode::kFailedPrecondition, gram::RESTART_FAILED, "restart: " + why, remedy);
}

absl::Status NoStateFile(const std::string& name) {
  return Refuse(absl::StatusCode::kNotFound, gram::NO_STATE_FILE, fmt::format("restart: there is no job {} of yours", name),
                "see which there are: sekisho list --all");
}

awaitable<absl::StatusOr<proto::JobStatus>> Find(Session& session, std::string job_id) {
  CO_ASSIGN_OR_RETURN(const proto::JobStatus job, co_await LookUp(session, job_id));
  if (job.state() == proto::UNKNOWN) {
    co_return NoStateFile(JobName(session.target(), session.target().site, job_id));
  }
  co_return job;
}

// Of a job that has ended nothing goes out any more; what it has written can still be shown, from any byte on.
absl::Status CheckEnded(const proto::JobStatus& job, const rsl::JobDescription& restart) {
  const auto is_sent = [](const rsl::Destination& destination) { return rsl::IsSent(destination.target); };
  for (const auto* const stream : {&restart.standard_output, &restart.standard_error}) {
    if (std::any_of(stream->begin(), stream->end(), is_sent)) {
      return RestartFailed(fmt::format("the job is {}, and nothing of it goes out any more", StateName(job.state())),
                           fmt::format("what the site has kept: sekisho output {}/{}", job.site(), job.job_id()));
    }
  }
  for (const char* const position : {"stdout_position", "stderr_position"}) {
    if (restart.Has(position) && job.task_size() > 1) {
      const rsl::Position where = restart.WhereIs(position);
      return RestartFailed(fmt::format("{}:{}: {}: expected a job of one task, saw {}", where.line, where.column, position,
                                       job.task_size()),
                           "leave it out: each task writes its own");
    }
  }
  return absl::OkStatus();
}

awaitable<absl::Status> RedirectIt(Session& session, proto::JobStatus job, const RestartOptions& options) {
  if (!IsFinal(job.state())) {
    const absl::Status status = co_await Redirect(session, job.job_id(), *options.update);
    if (!IsRefusal(status)) {
      co_return status;
    }
    CO_ASSIGN_OR_RETURN(job, co_await Find(session, job.job_id()));
    if (!IsFinal(job.state())) {
      co_return status;
    }
  }
  co_return CheckEnded(job, options.restart);
}

void AddPosition(proto::AttachRequest& attach, proto::OutputChunk::Stream stream, const std::optional<int64_t>& position) {
  if (position) {
    attach.add_position()->set_stream(stream);
    attach.mutable_position()->rbegin()->set_offset(uint64_t(*position));
  }
}

awaitable<int> FollowIt(Session& session, std::string job_id, RestartOptions options) {
  FollowOptions follow;
  follow.job_id = job_id;
  follow.wanted.set_events(true);
  follow.wanted.set_output(true);
  follow.wanted.set_follow(true);
  AddPosition(follow.wanted, proto::OutputChunk::STDOUT, options.restart.standard_output_position);
  AddPosition(follow.wanted, proto::OutputChunk::STDERR, options.restart.standard_error_position);
  follow.shown = rsl::ShownAs(options.restart);
  follow.patience = options.patience;
  follow.cancels_on_interrupt = options.cancels_on_interrupt;
  const auto followed = co_await Follow(session, follow);
  if (!followed.ok()) {
    co_return Report(followed.status());
  }
  if (followed->was_left) {
    fmt::print(stderr, "sekisho: left; {0} goes on: sekisho status {0}\n", followed->name);
    co_return kExitCancelled;
  }
  fmt::print(stderr, "{}", EndText(followed->job));
  const DownloadOptions download{.patience = options.patience, .is_quiet = options.is_quiet};
  const auto fetched = co_await FetchRedirected(session, followed->job, options.restart, download);
  if (!fetched.ok() || !*fetched) {
    fmt::print(stderr, "sekisho: what it has sent out for you is kept at the site: sekisho get {}\n", followed->name);
  }
  if (!fetched.ok()) {
    co_return ReportFetch(fetched.status());
  }
  co_return ExitCodeOf(followed->job);
}

awaitable<int> TakeUp(Session& session, std::string job_id, RestartOptions options) {
  const auto job = co_await Find(session, job_id);
  if (!job.ok()) {
    co_return Report(job.status());
  }
  if (job->state() == proto::PENDING || job->state() == proto::STAGE_IN) {
    const absl::Status committed = co_await Commit(session, job_id, kCommitPatience);
    if (!committed.ok() && !IsRefusal(committed)) {  // a refusal: it waits for none
      co_return Report(committed);
    }
  }
  if (options.delegation != Delegation::kNone) {
    const RefreshOptions refresh{.is_full = options.delegation == Delegation::kFull};
    const int code = co_await RefreshCredential(session, job_id, refresh);
    if (code != 0) {
      co_return code;
    }
  }
  if (options.update) {
    const absl::Status redirected = co_await RedirectIt(session, *job, options);
    if (!redirected.ok()) {
      co_return Report(redirected);
    }
  }
  if (!options.follows) {
    fmt::print("{}\n", JobName(session.target(), job->site(), job_id));
    co_return 0;
  }
  const int code = co_await FollowIt(session, job_id, options);
  co_return code;
}

// -r, if it is given, must lead to where the job is.
absl::Status CheckPlace(const Sites& sites, const std::string& resource, const JobReference& job) {
  if (resource.empty()) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Target target, sites.Resolve(resource));
  return target.contact.Address() == job.target.contact.Address()
             ? absl::OkStatus()
             : RestartFailed(fmt::format("expected the site of {}, {}, saw -r {}", job.id, job.target.contact.Address(),
                                         Harmless(resource)),
                             "leave -r out: the job's contact says where it is");
}

absl::Status CheckRestart(const rsl::JobDescription& restart, const RestartOptions& options) {
  if (options.has_options_of_new_jobs) {
    return RestartFailed("expected no --dry-run, --request-id or --save-request: they are of new jobs", "leave them out");
  }
  ASSIGN_OR_RETURN(const Sites sites, Sites::Load());
  const auto job = sites.ResolveJob(restart.restart_contact);
  if (!job.ok()) {
    const rsl::Position where = restart.WhereIs("restart");
    return Refuse(absl::StatusCode::kInvalidArgument, gram::RSL_RESTART,
                  fmt::format("{}:{}: restart: {}", where.line, where.column, Message(job.status())),
                  "name the job as submit printed it, SITE/ID, or by its contact");
  }
  return CheckPlace(sites, options.resource, *job);
}

}  // namespace

bool IsRestart(const rsl::CheckReport& checked) {
  return checked.jobs.size() == 1 && checked.jobs[0].use == rsl::Use::kRestart;
}

int Restart(const std::string& rsl, RestartOptions options) {
  const rsl::CheckReport checked = rsl::Check(rsl);
  const rsl::JobDescription& restart = checked.jobs[0];
  if (!checked.warnings.empty()) {
    return Report(rsl::ToStatus(checked.warnings[0]));
  }
  if (const absl::Status status = CheckRestart(restart, options); !status.ok()) {
    return Report(status);
  }
  options.restart = restart;
  options.update = UpdateIn(rsl);
  return WithJob(restart.restart_contact,
                 [&](Session& session, const std::string& job_id) { return TakeUp(session, job_id, options); });
}

}  // namespace sekisho::client
