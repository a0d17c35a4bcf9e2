// SPDX-License-Identifier: Apache-2.0
#include "qserver/admission.h"

#include <fmt/format.h>

#include "common/identity/chain.h"
#include "common/identity/dn.h"
#include "common/identity/freshness.h"
#include "common/job_array.h"
#include "common/job_state.h"
#include "qserver/administer_errors.h"
#include "qserver/cache_plan.h"
#include "qserver/demand.h"
#include "qserver/engine.h"
#include "qserver/errors.h"
#include "qserver/hold_errors.h"
#include "qserver/many_errors.h"
#include "qserver/ranks.h"
#include "qserver/tasks.h"
#include "rsl/array.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::qserver {
namespace {

constexpr size_t kTaskBytesMost = 64 << 20;  // arguments and environments of all tasks
constexpr size_t kConditionValuesMost = 256;
constexpr size_t kConditionBytesMost = 16 << 10;

identity::SignedRequest FromProto(const proto::SignedRequest& request) {
  return {request.body(), request.signature(), {request.chain().begin(), request.chain().end()}};
}

absl::Status CheckTarget(const proto::RequestBody& body, const AdmissionRules& rules) {
  if (!body.site().empty() && body.site() != rules.site) {
    return errors::WrongSite(body.site(), rules.site);
  }
  const std::string gatekeeper = identity::NormalizeDn(body.gatekeeper_subject());
  if (!rules.gatekeepers.empty() && rules.gatekeepers.count(gatekeeper) == 0) {
    return errors::WrongGatekeeper(body.gatekeeper_subject());
  }
  if (body.site().empty() && rules.gatekeepers.empty()) {
    return errors::BadRequest("it names no site, and this site lists no gatekeepers");
  }
  return absl::OkStatus();
}

// The account by the inside's own map; the outside's must be the same.
absl::StatusOr<std::string> CheckMapping(const std::string& subject, const std::string& wanted,
                                         const std::string& outside,
                                         const identity::Gridmap& gridmap) {
  const absl::StatusOr<std::string> inside = gridmap.Lookup(subject, wanted);
  if (!inside.ok()) {
    return errors::NotMapped(subject, Message(inside.status()));
  }
  if (*inside != outside) {
    return errors::MappingsDiffer(subject, outside, *inside);
  }
  return *inside;
}

// jobmanager-agent-QUEUE: what follows the executor.
std::string QueueOfService(const std::string& service) {
  for (const std::string prefix : {"jobmanager-agent-", "jobmanager-slurm-"}) {
    if (service.starts_with(prefix)) {
      return service.substr(prefix.size());
    }
  }
  return "";
}

rsl::Variables VariablesFor(const Verified& verified, const Account& account,
                            const AdmissionRules& rules) {
  const std::string contact = JobContact(verified.body.gatekeeper_subject(), verified.job_id);
  rsl::Variables variables = {
      {"HOME", account.home},
      {"LOGNAME", verified.account},
      {"GLOBUS_ID", verified.identity.subject},
      {"GLOBUS_GATEKEEPER_HOST", HostOfSubject(verified.body.gatekeeper_subject())},
      {"GLOBUS_GATEKEEPER_PORT", "2119"},
      {"GLOBUS_GATEKEEPER_SUBJECT", verified.body.gatekeeper_subject()},
      {"GLOBUS_LOCATION", "/usr"},
      {"GLOBUS_GRAM_JOB_CONTACT", contact},
      {"GLOBUS_GRAM_JOB_ID", verified.job_id},
      {"GLOBUS_CACHED_STDOUT", "x-gass-cache://" + contact + "stdout"},
      {"GLOBUS_CACHED_STDERR", "x-gass-cache://" + contact + "stderr"},
      {"SCRATCH_DIRECTORY", account.home},
      {"GLOBUSRUN_GASS_URL", rsl::kClientUrl},
      {"SEKISHO_ARRAY_INDEX", "0"},  // of what is no array
  };
  for (const auto& [name, value] : rules.host) {
    variables[name] = value;
  }
  return variables;
}

// They go to the allocator with each question, as long as the job waits.
absl::Status CheckConditions(const std::vector<rsl::Condition>& conditions) {
  size_t values = 0;
  size_t bytes = 0;
  for (const rsl::Condition& condition : conditions) {
    values += condition.values.size();
    for (const std::string& value : condition.values) {
      bytes += value.size();
    }
  }
  return values > kConditionValuesMost || bytes > kConditionBytesMost
             ? errors::TooManyConditions(values, kConditionValuesMost, kConditionBytesMost)
             : absl::OkStatus();
}

// The ids of the jobs that are named, SITE/ID, contact or ID alone.
absl::StatusOr<std::vector<std::string>> Followed(const std::vector<std::string>& names, const std::string& site) {
  constexpr size_t kMost = 256;
  if (names.size() > kMost) {
    return errors::TooManyToFollow(names.size(), kMost);
  }
  std::vector<std::string> ids;
  for (const std::string& name : names) {
    const std::string bare = name.substr(0, name.find_last_not_of('/') + 1);
    const size_t slash = bare.rfind('/');
    const std::string id = slash == std::string::npos ? bare : bare.substr(slash + 1);
    if (!IsJobId(id)) {
      return errors::BadFollowed(name);
    }
    const bool names_site = slash != std::string::npos && bare.find_first_of(":.") == std::string::npos;
    if (names_site && bare.substr(0, slash) != site) {
      return errors::OtherSitesJob(name, site);
    }
    ids.push_back(id);
  }
  return ids;
}

absl::Status CheckArray(const rsl::JobDescription& job, const proto::RequestBody& body) {
  if (body.submit().has_charter()) {
    return errors::NoArrayOf("parts of multi-site programs");
  }
  if (body.submit().has_input()) {
    return errors::NoArrayOf("jobs that are fed standard input");
  }
  if (IsEngineService(body.service())) {
    return errors::NoArrayOf("jobs of a batch system");
  }
  if (HasStageOut(job)) {
    return errors::NoArrayOf("jobs with file_stage_out, file_clean_up, scratch_dir, or output to URLs or to several places");
  }
  for (const auto* list : {&job.file_stage_in, &job.file_stage_in_shared}) {
    for (const rsl::Transfer& transfer : *list) {
      if ((transfer.from + transfer.to).find(rsl::kArrayIndexMark) != std::string::npos) {
        return errors::NotOfAnElement();
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDescription(const rsl::JobDescription& job, const Verified& verified,
                              const AdmissionRules& rules) {
  if (const std::vector<rsl::Error> unsupported = rsl::Unsupported(job); !unsupported.empty()) {
    return errors::BadRsl(unsupported[0]);
  }
  if (!job.username.empty() && job.username != verified.account) {
    return errors::WrongUserName(job.username, verified.account);
  }
  if (!job.project.empty() && !rules.projects.empty() && rules.projects.count(job.project) == 0) {
    return errors::UnknownProject(job.project, fmt::format("{}", fmt::join(rules.projects, ", ")));
  }
  RETURN_IF_ERROR(CheckConditions(job.conditions));
  if (IsEngineService(verified.body.service())) {
    if (!rules.has_engine) {
      return errors::NoEngine(verified.body.service());
    }
    if (job.is_held || !job.after.empty() || !job.after_any.empty()) {
      return errors::NoEngineHolds();
    }
    if (!job.conditions.empty()) {
      return errors::NoEngineConditions(job.conditions[0].attribute);
    }
    if (!IsEngineName(job.queue)) {
      return errors::BadEngineName("queue", job.queue, 37);
    }
    if (!IsEngineName(job.project)) {
      return errors::BadEngineName("project", job.project, 38);
    }
  }
  const int64_t wall_time_s = job.WallTimeMinutes().value_or(0) * 60;
  if (rules.wall_time_max_s > 0 && wall_time_s > rules.wall_time_max_s) {
    return errors::WallTimeTooLong(wall_time_s, rules.wall_time_max_s);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Verified> Verify(const proto::QueueRequest& request, const AdmissionRules& rules,
                                identity::JudgedChains& chains, const identity::Gridmap& gridmap,
                                identity::Time now) {
  // Who signed it?
  Verified verified;
  ASSIGN_OR_RETURN(verified.identity,
                   identity::VerifyRequest(FromProto(request.request()), chains, now));
  if (!verified.body.ParseFromString(request.request().body())) {
    return errors::BadRequest("its body is not a RequestBody");
  }

  // Is it meant for us, and may he?
  RETURN_IF_ERROR(CheckTarget(verified.body, rules));
  if (!rules.accept_limited && (verified.body.has_submit() || verified.body.has_submit_many())) {
    RETURN_IF_ERROR(identity::RequireUnlimited(verified.identity));
  }
  ASSIGN_OR_RETURN(
      verified.account,
      CheckMapping(verified.identity.subject, verified.body.account(), request.account(), gridmap));
  if (verified.body.request_id().empty() || verified.body.request_id().size() > 256) {
    return errors::BadRequest("its request id is empty or longer than 256 bytes");
  }
  if (verified.body.has_submit()) {
    verified.job_id = JobIdFor(rules.site, verified.identity.subject, verified.body.request_id());
  }
  if (verified.body.has_cancel() && verified.body.cancel().job_id().empty()) {
    verified.body.mutable_cancel()->set_job_id(
        JobIdFor(rules.site, verified.identity.subject, verified.body.cancel().request_id()));
  }
  return verified;
}

absl::Status CheckFresh(const Verified& verified, const AdmissionRules& rules, identity::Time now) {
  const identity::Time signed_at{std::chrono::seconds(verified.body.time_ms() / 1000)};
  if (const auto refusal = identity::CheckFreshness(signed_at, now, rules.freshness)) {
    return identity::ToStatus(*refusal);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CheckLife(const Verified& verified, const Admitted& admitted, const AdmissionRules& rules,
                                      identity::Time now) {
  return JudgeLife(verified.identity.not_after, admitted.demand.wall_time_s(), admitted.awaits_credential,
                   rules.too_short, now);
}

absl::Status CheckAdministrator(const Verified& verified, const AdmissionRules& rules, identity::Time now) {
  if (rules.administrators.count(identity::NormalizeDn(verified.identity.subject)) == 0) {
    return errors::NotAnAdministrator(verified.identity.subject);
  }
  RETURN_IF_ERROR(identity::RequireUnlimited(verified.identity));
  return CheckFresh(verified, rules, now);
}

absl::StatusOr<Admitted> Describe(const Verified& verified, const proto::SignedRequest& request,
                                  const AdmissionRules& rules, const FindAccount& find_account) {
  const absl::StatusOr<Account> account = find_account(verified.account);
  RETURN_IF_ERROR(account.status());
  if (account->uid == 0) {
    return errors::NoRoot();
  }

  if (verified.body.submit().rsl().size() > rules.rsl_bytes_max) {
    return errors::RslTooLarge(verified.body.submit().rsl().size(), rules.rsl_bytes_max);
  }

  // Understand it.
  const auto parsed = rsl::Parse(verified.body.submit().rsl());
  if (!parsed.ok()) {
    return errors::BadRsl(parsed.error());
  }
  if (parsed->kind == rsl::Spec::Kind::kMultiRequest) {
    return errors::MultiRequest();
  }
  rsl::Variables variables = VariablesFor(verified, *account, rules);
  auto evaluated = rsl::Evaluate(*parsed, variables);
  if (!evaluated.ok()) {
    return errors::BadRsl(evaluated.error());
  }
  auto job = rsl::Describe(*evaluated);
  if (job.ok() && (job->array || !job->scratch_dir.empty())) {
    ASSIGN_OR_RETURN(const std::string scratch, PlanScratch(*job, account->home, verified.job_id, rules.staging));
    if (!scratch.empty()) {
      variables["SCRATCH_DIRECTORY"] = scratch;
    }
    if (job->array) {
      variables["SEKISHO_ARRAY_INDEX"] = rsl::kArrayIndexMark;
    }
    evaluated = rsl::Evaluate(*parsed, variables);
    if (!evaluated.ok()) {
      return errors::BadRsl(evaluated.error());
    }
    job = rsl::Describe(*evaluated);
  }
  if (!job.ok()) {
    return errors::BadRsl(job.error());
  }
  if (LocalizeStaged(*evaluated, *job, account->home, verified.job_id)) {
    job = rsl::Describe(*evaluated);
    CHECK(job.ok());
  }
  if (verified.body.submit().awaits_credential()) {
    NameCredential(*evaluated, account->home, verified.job_id);
    job = rsl::Describe(*evaluated);
    CHECK(job.ok());
  }
  if (job->use == rsl::Use::kRestart) {
    return errors::BadRsl(rsl::NotASubmission(*job));
  }
  RETURN_IF_ERROR(CheckDescription(*job, verified, rules));
  if (job->array) {
    RETURN_IF_ERROR(CheckArray(*job, verified.body));
  }
  RETURN_IF_ERROR(PlanStageOut(*job, account->home, verified.job_id, rules.staging).status());
  RETURN_IF_ERROR(PlanCache(*job, account->home, rules.staging).status());
  RETURN_IF_ERROR(PlanCleanUp(*job, account->home, rules.staging).status());
  RETURN_IF_ERROR(PlanStageIn(*job, verified.body.submit().file(), account->home, rules.staging).status());
  const proto::RequestBody::Submit& submit = verified.body.submit();
  if (submit.has_charter()) {
    if (submit.awaits_credential()) {
      return errors::BadRequest("a part of a world takes no credential");
    }
    RETURN_IF_ERROR(CheckCharter(submit.charter(), *job, rules.relay));
    RETURN_IF_ERROR(CheckSpeaker(submit.charter(), rules.site, rules.subject));
  }
  if (TaskBytes(*job) > kTaskBytesMost / size_t(TaskCount(*job))) {
    return errors::TooMuchToSend(TaskCount(*job), TaskBytes(*job), kTaskBytesMost);
  }
  if (job->queue.empty()) {
    job->queue = QueueOfService(verified.body.service());
  }

  Admitted admitted;
  admitted.job_id = verified.job_id;
  admitted.gatekeeper_subject = verified.body.gatekeeper_subject();
  admitted.has_input = verified.body.submit().has_input();
  admitted.asked = AskedBy(submit);
  admitted.awaits_credential = submit.awaits_credential();
  admitted.has_stage_in = !job->file_stage_in.empty() || !job->file_stage_in_shared.empty() ||
                          !job->scratch_dir.empty() || submit.awaits_credential();
  admitted.has_stage_out = HasStageOut(*job);
  admitted.files = submit.file();
  admitted.is_dry_run = verified.body.submit().dry_run() || job->is_dry_run;
  admitted.demand = MakeDemand(verified.job_id, *job, rules.wall_time_max_s);
  admitted.is_held = job->is_held;
  ASSIGN_OR_RETURN(admitted.after, Followed(job->after, rules.site));
  ASSIGN_OR_RETURN(admitted.after_any, Followed(job->after_any, rules.site));
  if (submit.has_charter()) {
    admitted.charter = submit.charter();
  } else {  // a part of a world has its leader's release for that
    admitted.commit_within_s = job->two_phase_seconds.value_or(0);
  }
  proto::JobEvent::Submitted& submitted = admitted.submitted;
  submitted.set_site(rules.site);
  submitted.set_subject(verified.identity.subject);
  submitted.set_account(verified.account);
  submitted.set_request_id(verified.body.request_id());
  submitted.set_service(verified.body.service());
  submitted.set_rsl(rsl::Print(*evaluated));
  submitted.set_count(int(job->count));
  submitted.set_executable(job->executable);
  submitted.set_queue(job->queue);
  submitted.set_project(job->project);
  if (job->array) {
    *submitted.mutable_array() = MakeArray(job->array->ranges, job->array->at_once);
    submitted.set_executable(rsl::ForElement(job->executable, job->array->ranges[0].first));
  }
  submitted.mutable_after()->Assign(admitted.after.begin(), admitted.after.end());
  submitted.mutable_after_any()->Assign(admitted.after_any.begin(), admitted.after_any.end());
  *submitted.mutable_request() = request;
  return admitted;
}

absl::StatusOr<rsl::JobDescription> DescribeUpdate(const Verified& verified, const Job& job, const AdmissionRules& rules,
                                                   const Account& account) {
  const std::string& text = verified.body.signal().argument();
  if (text.size() > rules.rsl_bytes_max) {
    return errors::RslTooLarge(text.size(), rules.rsl_bytes_max);
  }
  Verified of_job = verified;
  of_job.job_id = job.status.job_id();
  of_job.body.set_gatekeeper_subject(*job.gatekeeper_subject);
  rsl::Variables variables = VariablesFor(of_job, account, rules);
  if (const auto submitted = rsl::ParseAndDescribe(job.status.rsl(), {}); submitted.ok()) {
    ASSIGN_OR_RETURN(const std::string scratch, PlanScratch(*submitted, account.home, of_job.job_id, rules.staging));
    if (!scratch.empty()) {
      variables["SCRATCH_DIRECTORY"] = scratch;
    }
  }
  auto update = rsl::ParseAndDescribe(text, variables, rsl::Use::kStdioUpdate);
  if (!update.ok()) {
    return errors::BadRsl(update.error());
  }
  if (const std::vector<rsl::Error> unsupported = rsl::Unsupported(*update); !unsupported.empty()) {
    return errors::BadRsl(unsupported[0]);
  }
  return *std::move(update);
}

Verified OneOfMany(const Verified& many, int index, const AdmissionRules& rules) {
  Verified one;
  one.identity = many.identity;
  one.account = many.account;
  one.body.set_site(many.body.site());
  one.body.set_gatekeeper_subject(many.body.gatekeeper_subject());
  one.body.set_request_id(fmt::format("{}.{}", many.body.request_id(), index));
  one.body.set_time_ms(many.body.time_ms());
  one.body.set_account(many.body.account());
  one.body.set_service(many.body.service());
  *one.body.mutable_submit() = many.body.submit_many().job(index);
  one.job_id = JobIdFor(rules.site, many.identity.subject, one.body.request_id());
  return one;
}

absl::Status CheckRoom(const Queue::Usage& usage, const Admitted& admitted,
                       const AdmissionRules& rules) {
  if (usage.live >= rules.jobs_max) {
    return errors::TooManyJobs(rules.jobs_max);
  }
  if (usage.bytes + admitted.submitted.ByteSizeLong() > rules.kept_bytes_max) {
    return errors::TooManyBytes(rules.kept_bytes_max);
  }
  return absl::OkStatus();
}

}  // namespace sekisho::qserver
