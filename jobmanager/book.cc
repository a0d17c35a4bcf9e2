// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/book.h"

#include <algorithm>
#include <memory>

#include "common/asked.h"
#include "common/job_array.h"
#include "common/job_state.h"
#include "jobmanager/errors.h"

namespace sekisho::jobmanager {

using proto::JobEvent;
using proto::JobStatus;

constexpr size_t kListBytesMax = 3'500'000;  // of the 4 MiB that a message may have

absl::Status Book::FoldInto(const JobEvent& event, Job& job) {
  const ElementIs before = CountedAs(job.status);
  RETURN_IF_ERROR(Fold(event, job.status));
  if (event.has_submitted()) {
    const auto& submitted = event.submitted();
    job.asked = AskedBy(submitted);
    // clear_rsl() would keep its memory.
    const std::unique_ptr<std::string> gone[] = {
        std::unique_ptr<std::string>(job.status.release_rsl()),     std::unique_ptr<std::string>(job.status.release_site()),
        std::unique_ptr<std::string>(job.status.release_account()), std::unique_ptr<std::string>(job.status.release_subject()),
        std::unique_ptr<std::string>(job.status.release_service())};
    job.owner = &*owners_.insert({submitted.site(), submitted.account(), submitted.subject(), submitted.service()}).first;
  }
  if (Job* array = ArrayOf(job.status)) {
    Recount(before, CountedAs(job.status), *array->status.mutable_array());
    job.status.set_submitted_ms(array->status.submitted_ms());
  }
  return absl::OkStatus();
}

Book::Job* Book::ArrayOf(const JobStatus& job) {
  const auto found = job.has_element() ? jobs_.find(job.element().array()) : jobs_.end();
  return found != jobs_.end() && found->second.status.has_array() ? &found->second : nullptr;
}

bool Book::IsUnmade(const std::string& job_id, const std::string& subject) const {
  const auto element = SplitElementId(job_id);
  const JobStatus* array = element && !Has(job_id) ? Find(element->first, subject) : nullptr;
  return array != nullptr && HasElement(array->array().what(), element->second);
}

absl::Status Book::Replay(const JobEvent& event) {
  Job& job = jobs_[event.job_id()];
  const bool is_ours = event.sequence() == job.last_sequence;
  if (job.is_ended_here && !is_ours && event.has_ended()) {
    job.status.set_state(proto::UNSUBMITTED);
  }
  const absl::Status status = FoldInto(event, job);
  if (job.status.job_id().empty()) {
    jobs_.erase(event.job_id());
    return status;
  }
  if (status.ok() && event.has_ended()) {
    job.is_ended_here = is_ours;
  }
  job.last_sequence = std::max(job.last_sequence, event.sequence());
  position_ = std::max(position_, event.sequence());
  return status;
}

const JobStatus* Book::FindAny(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? nullptr : &found->second.status;
}

const Book::Job* Book::FindJob(const std::string& job_id, const std::string& subject) const {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() || found->second.owner->subject != subject ? nullptr : &found->second;
}

const JobStatus* Book::Find(const std::string& job_id, const std::string& subject) const {
  const Job* job = FindJob(job_id, subject);
  return job == nullptr ? nullptr : &job->status;
}

JobStatus Book::Whole(const Job& job) {
  JobStatus status = job.status;
  status.set_site(job.owner->site);
  status.set_account(job.owner->account);
  status.set_subject(job.owner->subject);
  status.set_service(job.owner->service);
  return status;
}

absl::StatusOr<bool> Book::IsRepeat(const JobEvent& submitted) const {
  const auto& asked = submitted.submitted();
  const Job* known = FindJob(submitted.job_id(), asked.subject());
  if (known == nullptr) {
    return false;
  }
  if (known->asked != AskedBy(asked) || known->owner->service != asked.service()) {
    return errors::OtherRequest(asked.request_id(), submitted.job_id());
  }
  return true;
}

absl::Status Book::Add(JobEvent& event) {
  Job& job = jobs_[event.job_id()];
  event.set_sequence(job.last_sequence);
  const absl::Status status = FoldInto(event, job);
  if (job.status.job_id().empty()) {
    jobs_.erase(event.job_id());
  } else if (status.ok() && event.has_ended()) {
    job.is_ended_here = true;
  }
  return status;
}

bool Book::IsEndedHere(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  return found != jobs_.end() && found->second.is_ended_here;
}

bool Book::Take(const JobEvent& event) {
  const auto job = jobs_.find(event.job_id());
  if (event.sequence() <= (job == jobs_.end() ? position_ : job->second.last_sequence)) {
    return false;
  }
  position_ = std::max(position_, event.sequence());
  const bool is_known = Has(event.job_id());
  if (is_known == event.has_submitted()) {
    return false;  // known already, or forgotten
  }
  if (IsEndedHere(event.job_id()) && !event.has_ended()) {
    return false;
  }
  return Replay(event).ok();
}

void Book::Withdraw(const std::string& job_id) { jobs_.erase(job_id); }

JobStatus Book::Status(const std::string& job_id, const std::string& subject) const {
  if (const Job* known = FindJob(job_id, subject)) {
    return Whole(*known);
  }
  if (IsUnmade(job_id, subject)) {
    const auto element = SplitElementId(job_id);
    return UnmadeElement(Whole(*FindJob(element->first, subject)), element->second);
  }
  JobStatus unknown;
  unknown.set_job_id(job_id);
  unknown.set_state(proto::UNKNOWN);
  const absl::Status status = errors::NoSuchJob(job_id);
  unknown.set_reason(Message(status));
  unknown.set_remedy(Remedy(status));
  unknown.set_gram_code(GramCode(status));
  return unknown;
}

proto::StatusReply Book::List(const std::string& subject, bool with_ended) const {
  std::vector<const Job*> found;
  for (const auto& [id, job] : jobs_) {
    if (job.owner->subject == subject && !job.status.has_element() && (with_ended || !IsFinal(job.status.state()))) {
      found.push_back(&job);
    }
  }
  std::sort(found.begin(), found.end(), [](const Job* one, const Job* other) {
    const JobStatus &a = one->status, &b = other->status;
    return a.submitted_ms() != b.submitted_ms() ? a.submitted_ms() > b.submitted_ms() : a.job_id() < b.job_id();
  });
  proto::StatusReply reply;
  size_t size = 0;
  for (const Job* job : found) {
    size += (*reply.add_job() = Whole(*job)).ByteSizeLong();
    if (size > kListBytesMax) {
      reply.mutable_job()->RemoveLast();
      reply.set_is_cut(true);
      break;
    }
  }
  return reply;
}

std::vector<std::string> Book::AliveInside() const {
  std::vector<std::string> ids;
  for (const auto& [id, job] : jobs_) {
    if (job.last_sequence > 0 && !IsFinal(job.status.state()) && job.status.state() != proto::UNSUBMITTED) {
      ids.push_back(id);
    }
  }
  return ids;
}

uint64_t Book::LastSequence(const std::string& job_id) const {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? 0 : found->second.last_sequence;
}

std::vector<std::string> Book::EndedBefore(int64_t time_ms) const {
  std::vector<std::string> ids;
  for (const auto& [id, job] : jobs_) {
    // Elements go with their array: without it nobody would know that they have been.
    const auto array = job.status.has_element() ? jobs_.find(job.status.element().array()) : jobs_.end();
    const JobStatus& counts = array != jobs_.end() ? array->second.status : job.status;
    if (IsFinal(counts.state()) && counts.ended_ms() < time_ms) {
      ids.push_back(id);
    }
  }
  return ids;
}

}  // namespace sekisho::jobmanager
