// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/request.h"

#include <algorithm>

#include "common/job_array.h"
#include "common/job_state.h"
#include "jobmanager/errors.h"
#include "rsl/job_description.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::jobmanager {
namespace {

constexpr size_t kRequestIdBytesMax = 128;
constexpr char kDefaultService[] = "jobmanager";

bool IsRequestId(const std::string& text) {
  return !text.empty() && text.size() <= kRequestIdBytesMax &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

absl::Status RslStatus(const rsl::Error& error) {
  return Refuse(absl::StatusCode::kInvalidArgument, error.gram_code, error.Reason(), error.remedy);
}

}  // namespace

absl::StatusOr<proto::RequestBody> ReadRequest(const proto::SignedRequest& request, const Caller& caller,
                                               const Here& here) {
  proto::RequestBody body;
  if (!body.ParseFromString(request.body()) || body.action_case() == proto::RequestBody::ACTION_NOT_SET) {
    return errors::Malformed("the signed body cannot be read");
  }
  if (!IsRequestId(body.request_id())) {
    return errors::Malformed("a request id is 1 to 128 printable characters without blanks");
  }
  if (!body.site().empty() && body.site() != here.site) {
    return errors::Mismatch("site", body.site(), here.site);
  }
  if (!body.gatekeeper_subject().empty() && body.gatekeeper_subject() != here.gatekeeper_subject) {
    return errors::Mismatch("gatekeeper", body.gatekeeper_subject(), here.gatekeeper_subject);
  }
  if (!body.account().empty() && body.account() != caller.account) {
    return errors::Mismatch("account", body.account(), caller.account);
  }
  const std::string service = body.service().empty() ? kDefaultService : body.service();
  if (body.has_submit() && service != caller.service) {
    return errors::Mismatch("service", service, caller.service);
  }
  return body;
}

absl::StatusOr<NewJob> JudgeSubmit(const proto::SignedRequest& request, const proto::RequestBody& body,
                                   const Caller& caller, const Here& here) {
  if (!body.has_submit()) {
    return errors::Malformed("a submit was expected");
  }
  const auto spec = rsl::Parse(body.submit().rsl());
  if (!spec.ok()) {
    return RslStatus(spec.error());
  }
  // Names like HOME are known inside the site only; here they stand for themselves.
  const auto evaluated = rsl::Evaluate(*spec, rsl::UnknownSiteVariables());
  if (!evaluated.ok()) {
    return RslStatus(evaluated.error());
  }
  const auto parts = rsl::DescribeParts(*evaluated);
  if (!parts.ok()) {
    return RslStatus(parts.error());
  }
  if (parts->size() != 1 || parts->front().part) {
    return errors::MultiRequest();
  }
  const rsl::JobDescription& job = parts->front();
  if (job.use == rsl::Use::kRestart) {
    return RslStatus(rsl::NotASubmission(job));
  }
  if (const auto unsupported = rsl::Unsupported(job); !unsupported.empty()) {
    return RslStatus(unsupported.front());
  }
  if (!job.username.empty() && job.username != caller.account) {
    return errors::OtherUser(job.username, caller.account);
  }
  if (!job.queue.empty() && !caller.queue.empty() && job.queue != caller.queue) {
    return errors::OtherQueue(job.queue, caller.queue);
  }

  NewJob result;
  result.is_dry_run = body.submit().dry_run() || job.is_dry_run;
  result.commit_within_s = body.submit().has_charter() ? 0 : job.two_phase_seconds.value_or(0);
  result.submitted.set_job_id(JobIdFor(here.site, caller.subject, body.request_id()));
  auto& submitted = *result.submitted.mutable_submitted();
  submitted.set_site(here.site);
  submitted.set_subject(caller.subject);
  submitted.set_account(caller.account);
  submitted.set_request_id(body.request_id());
  submitted.set_service(caller.service);
  submitted.set_rsl(rsl::Print(*spec));
  submitted.set_count(static_cast<int32_t>(job.count));
  submitted.set_executable(job.executable);
  submitted.set_queue(job.queue.empty() ? caller.queue : job.queue);
  if (job.array) {
    *submitted.mutable_array() = MakeArray(job.array->ranges, job.array->at_once);
  }
  *submitted.mutable_request() = request;
  return result;
}

}  // namespace sekisho::jobmanager
