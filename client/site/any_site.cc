// SPDX-License-Identifier: Apache-2.0
#include "client/site/any_site.h"

#include <fmt/format.h>

#include "client/site/exit_code.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "common/identity/credential.h"
#include "common/identity/dn.h"
#include "common/identity/path.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

constexpr int kContactingJobManager = 79;  // of GRAM's errors

std::string OperatorText(rsl::Operator op) {
  switch (op) {
    case rsl::Operator::kEqual: return "=";
    case rsl::Operator::kNotEqual: return "!=";
    case rsl::Operator::kGreater: return ">";
    case rsl::Operator::kGreaterEqual: return ">=";
    case rsl::Operator::kLess: return "<";
    case rsl::Operator::kLessEqual: return "<=";
  }
  return "=";
}

struct Outcome {
  int exit_code = 0;
  absl::Status refusal;
};

Outcome AskOne(const Target& target, const Ask& ask) {
  Loop& loop = NewLoop();
  auto session = Session::Open(loop, target);
  if (!session.ok()) {
    return {ExitCodeOf(session.status()), session.status()};
  }
  Outcome outcome;
  outcome.exit_code = RunOnLoop(loop, ask(*session->release(), outcome.refusal));
  return outcome;
}

int AskNamed(const Sites& sites, const std::string& resource, const Ask& ask) {
  const auto target = sites.Resolve(resource);
  if (!target.ok()) {
    return Report(target.status());
  }
  const Outcome outcome = AskOne(*target, ask);
  return outcome.refusal.ok() ? outcome.exit_code : Report(outcome.refusal);
}

absl::StatusOr<Target> TargetOf(const glue::Candidate& candidate) {
  Target target;
  target.site = candidate.offer->site;
  ASSIGN_OR_RETURN(target.contact, ParseContact(candidate.offer->contact));
  target.contact.service = candidate.share->service.starts_with("jobmanager-slurm") ? "jobmanager-slurm" : "jobmanager";
  return target;
}

int AskBest(const Sites& sites, const PlaceOptions& options, const rsl::JobDescription& job,
            const Ask& ask) {
  const auto where = options.where.empty() ? absl::StatusOr<glue::Where>(glue::Where()) : glue::Where::Parse(options.where);
  if (!where.ok()) {
    return Report(absl::InvalidArgumentError("--where: " + Message(where.status())));
  }
  const auto offers = AskDirectory(*sites.directory());
  if (!offers.ok()) {
    return Report(offers.status());
  }
  const glue::Choice choice = glue::Choose(*offers, DemandOf(job, OwnSubject()), *where, NowMs() / 1000,
                                            glue::DistanceFrom(sites.near(), *offers));
  if (options.says_why) {
    fmt::print(stderr, "{}", HarmlessLines(glue::Explain(choice)));
  }
  absl::Status last;
  for (const glue::Candidate& candidate : choice.candidates) {
    const auto target = TargetOf(candidate);
    if (!target.ok()) {
      last = target.status();
      continue;
    }
    if (options.says_why) {
      fmt::print(stderr, "chosen: {}\n", Harmless(candidate.offer->site));
    }
    const Outcome outcome = AskOne(*target, ask);
    if (outcome.refusal.ok()) {
      return outcome.exit_code;
    }
    last = outcome.refusal;
    if (!options.is_quiet) {
      fmt::print(stderr, "sekisho: {} does not take the job: {}\n", Harmless(candidate.offer->site),
                 Harmless(Message(last)));
    }
  }
  return Report(NobodyTakesIt(choice, last));
}

}  // namespace

absl::Status NoDirectory() {
  return Refuse(absl::StatusCode::kInvalidArgument, 0, "any chooses among what a directory says; there is none",
                "name it in sites.json, \"directory\", or set GRID_INFO_HOST; or name the site");
}

std::string OwnSubject() {
  const auto credential = identity::LoadUserCredential();
  if (credential.ok()) {
    for (const auto& certificate : credential->chain) {
      if (identity::RoleOf(*certificate) == identity::Role::kEndEntity) {
        return identity::SubjectText(*certificate);
      }
    }
  }
  return "";
}

absl::Status NobodyTakesIt(const glue::Choice& choice, const absl::Status& last) {
  if (!last.ok()) {
    return Refuse(last.code(), GramCode(last), "no site took the job; the last said: " + Message(last), Remedy(last));
  }
  if (choice.rejections.empty()) {
    return Refuse(absl::StatusCode::kUnavailable, 12, "the directory knows no site",
                  "ask later, or name the site: -r SITE");
  }
  const glue::Rejection& first = choice.rejections.front();
  return Refuse(absl::StatusCode::kFailedPrecondition, 17,
                fmt::format("of {} that are published no site can run the job; {}: {}: wanted {}, published {}",
                            choice.rejections.size(), first.site, first.attribute, first.wanted,
                            first.published.empty() ? "nothing" : first.published),
                "see all reasons with --why, and ask for less");
}

bool IsRefusal(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kNotFound:  // "its state is not known"
      return false;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
      // A daemon of ours has said it; else, as when a daemon went away during the call, it just broke.
      return GramCode(error) != 0 && GramCode(error) != kContactingJobManager;
    default:
      return true;
  }
}

glue::Demand DemandOf(const rsl::JobDescription& job, const std::string& subject) {
  glue::Demand demand;
  demand.processes = job.count;
  demand.queue = job.queue;
  demand.needs_mpi = job.job_type == rsl::JobType::kMpi;
  demand.mpi = job.mpi_type;
  if (const auto minutes = job.WallTimeMinutes()) {
    demand.wall_time_s = *minutes * 60;
  }
  demand.memory_mb = job.min_memory_mb;
  for (const rsl::Condition& condition : job.conditions) {
    demand.conditions.push_back({condition.attribute, OperatorText(condition.op), condition.values});
  }
  demand.subject = subject;
  return demand;
}

int WithPlace(const PlaceOptions& options, const std::vector<rsl::JobDescription>& jobs, const Ask& ask) {
  const auto sites = Sites::Load();
  if (!sites.ok()) {
    return Report(sites.status());
  }
  if (options.resource != kAnySite) {
    return AskNamed(*sites, options.resource, ask);
  }
  if (!sites->directory()) {
    return Report(NoDirectory());
  }
  if (jobs.size() != 1) {
    return Report(absl::InvalidArgumentError("-r any takes one job, not a multi-request"));
  }
  return AskBest(*sites, options, jobs.front(), ask);
}

}  // namespace sekisho::client
