// SPDX-License-Identifier: Apache-2.0
#include "common/job_state.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <openssl/sha.h>

#include "common/job_array.h"

namespace sekisho {
namespace {

using proto::JobEvent;
using proto::JobState;
using proto::JobStatus;

proto::TaskStatus* TaskOf(JobStatus& status, int task) {
  for (auto& known : *status.mutable_task()) {
    if (known.task() == task) {
      return &known;
    }
  }
  auto* added = status.add_task();
  added->set_task(task);
  return added;
}

absl::Status CannotFollow(const JobEvent& event, const JobStatus& status, const char* what) {
  return absl::FailedPreconditionError(fmt::format("event '{}' cannot follow state {} of job {}", what,
                                                   StateName(status.state()), event.job_id()));
}

void FoldSubmitted(const JobEvent& event, JobStatus& status) {
  const auto& submitted = event.submitted();
  status.Clear();
  status.set_job_id(event.job_id());
  status.set_state(proto::UNSUBMITTED);
  status.set_site(submitted.site());
  status.set_subject(submitted.subject());
  status.set_account(submitted.account());
  status.set_request_id(submitted.request_id());
  status.set_service(submitted.service());
  status.set_rsl(submitted.rsl());
  status.set_count(submitted.count());
  status.set_executable(submitted.executable());
  status.set_queue(submitted.queue());
  status.set_project(submitted.project());
  status.set_submitted_ms(event.time_ms());
  if (submitted.has_element()) {  // its array is at the queue server already
    *status.mutable_element() = submitted.element();
    status.set_state(proto::PENDING);
  }
  if (submitted.has_array()) {
    *status.mutable_array()->mutable_what() = submitted.array();
    status.mutable_array()->set_elements(int32_t(ElementCount(submitted.array())));
    status.mutable_array()->set_waiting(status.array().elements());
  }
  *status.mutable_after() = submitted.after();
  status.mutable_after()->MergeFrom(submitted.after_any());
}

}  // namespace

bool IsFinal(JobState state) {
  return state == proto::DONE || state == proto::FAILED || state == proto::CANCELLED;
}

int GramState(JobState state) { return state == proto::CANCELLED ? proto::FAILED : state; }

std::string StateName(JobState state) {
  const std::string name = proto::JobState_Name(state);
  return name.empty() ? "UNKNOWN" : name;
}

absl::Status Fold(const JobEvent& event, JobStatus& status) {
  if (event.kind_case() == JobEvent::kSubmitted) {
    if (!status.job_id().empty()) {
      return CannotFollow(event, status, "submitted");
    }
    FoldSubmitted(event, status);
    return absl::OkStatus();
  }
  if (status.job_id().empty() || IsFinal(status.state())) {
    return CannotFollow(event, status, "any");
  }

  switch (event.kind_case()) {
    case JobEvent::kQueued:
      if (status.state() == proto::UNSUBMITTED) {
        status.set_state(proto::PENDING);
        status.clear_reason();
      }
      return absl::OkStatus();
    case JobEvent::kWaiting:
      status.set_reason(event.waiting().reason());
      if (!event.waiting().engine_job().empty()) {
        status.set_engine_job(event.waiting().engine_job());
      }
      return absl::OkStatus();
    case JobEvent::kAllocated:
      status.set_resource(event.allocated().resource());
      *status.mutable_placement() = event.allocated().placement();
      status.clear_reason();
      return absl::OkStatus();
    case JobEvent::kTaskStarted: {
      auto* task = TaskOf(status, event.task_started().task());
      task->set_node(event.task_started().node());
      if (status.state() == proto::PENDING || status.state() == proto::UNSUBMITTED ||
          status.state() == proto::STAGE_IN) {
        status.set_state(proto::ACTIVE);
        status.set_started_ms(event.time_ms());
        status.clear_reason();
      }
      return absl::OkStatus();
    }
    case JobEvent::kTaskExited: {
      auto* task = TaskOf(status, event.task_exited().task());
      task->set_ended(true);
      *task->mutable_exit() = event.task_exited().exit();
      return absl::OkStatus();
    }
    case JobEvent::kUncommitted:
      status.set_reason("waits for its commit");
      return absl::OkStatus();
    case JobEvent::kCommitted:
      status.clear_reason();
      return absl::OkStatus();
    case JobEvent::kReleased:
    case JobEvent::kCredentialEnding:
      return absl::OkStatus();
    case JobEvent::kStagingIn:
      if (status.state() == proto::UNSUBMITTED || status.state() == proto::PENDING) {
        status.set_state(proto::STAGE_IN);
      }
      status.set_reason(event.staging_in().reason());
      return absl::OkStatus();
    case JobEvent::kStagedIn:
      if (status.state() == proto::STAGE_IN) {
        status.set_state(proto::PENDING);
      }
      status.set_reason(status.is_held() ? "is held" : "");
      return absl::OkStatus();
    case JobEvent::kStagingOut:
      status.set_state(proto::STAGE_OUT);
      status.set_reason(event.staging_out().reason());
      return absl::OkStatus();
    case JobEvent::kStagedOut:
      *status.add_staged_out() = event.staged_out().file();
      return absl::OkStatus();
    case JobEvent::kDelegated:
      status.set_credential_until_ms(event.delegated().until_ms());
      return absl::OkStatus();
    case JobEvent::kRedirected:
      if (event.redirected().has_standard_output()) {
        *status.mutable_standard_output() = event.redirected().standard_output();
      }
      if (event.redirected().has_standard_error()) {
        *status.mutable_standard_error() = event.redirected().standard_error();
      }
      return absl::OkStatus();
    case JobEvent::kHeld:
      status.set_is_held(true);
      if (status.state() == proto::PENDING) {
        status.set_reason(event.held().by().empty() ? "is held by its user" : "is held by " + event.held().by());
      }
      return absl::OkStatus();
    case JobEvent::kLetGo:
      status.set_is_held(false);
      if (status.state() == proto::PENDING) {
        status.clear_reason();
      }
      return absl::OkStatus();
    case JobEvent::kBegun:
      if (status.state() == proto::PENDING) {
        status.set_state(proto::ACTIVE);
        status.set_started_ms(event.time_ms());
        status.clear_reason();
      }
      return absl::OkStatus();
    case JobEvent::kSuspended:
      if (status.state() != proto::ACTIVE) {
        return CannotFollow(event, status, "suspended");
      }
      status.set_state(proto::SUSPENDED);
      return absl::OkStatus();
    case JobEvent::kResumed:
      if (status.state() != proto::SUSPENDED) {
        return CannotFollow(event, status, "resumed");
      }
      status.set_state(proto::ACTIVE);
      return absl::OkStatus();
    case JobEvent::kCancelling:
      status.set_cancelling(true);
      status.set_reason(event.cancelling().reason());
      return absl::OkStatus();
    case JobEvent::kEnded: {
      const auto& ended = event.ended();
      if (!IsFinal(ended.state())) {
        return CannotFollow(event, status, "ended");
      }
      status.set_state(ended.state());
      status.set_gram_code(ended.gram_code());
      status.set_reason(ended.reason());
      status.set_remedy(ended.remedy());
      if (ended.has_exit()) {
        *status.mutable_exit() = ended.exit();
      }
      status.set_ended_ms(event.time_ms());
      if (status.has_array()) {  // those that never started
        auto& array = *status.mutable_array();
        array.set_cancelled(array.cancelled() + array.waiting());
        array.set_waiting(0);
      }
      return absl::OkStatus();
    }
    default:
      return absl::InvalidArgumentError(
          fmt::format("event {} of job {} is of no known kind", event.sequence(), event.job_id()));
  }
}

std::string JobIdFor(const std::string& site, const std::string& subject,
                     const std::string& request_id) {
  constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  constexpr int kLength = 13;
  std::string text;
  for (const std::string& part : {site, subject, request_id}) {
    text += fmt::format("{}:", part.size());  // so that no two triples give the same text
    text += part;
  }
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string id;
  for (int i = 0; i < kLength; ++i) {
    const int bit = i * 5;
    const unsigned window = (digest[bit / 8] << 8) | digest[bit / 8 + 1];
    id += kAlphabet[(window >> (11 - bit % 8)) & 31];
  }
  return id;
}

bool IsJobId(const std::string& text) {
  if (const auto element = SplitElementId(text)) {
    return element->first.find('[') == std::string::npos && IsJobId(element->first);
  }
  return text.size() == 13 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7');
         });
}

proto::Exit JobExit(const JobStatus& status) {
  const proto::TaskStatus* first = nullptr;
  for (const auto& task : status.task()) {
    const bool is_bad = task.exit().code() != 0 || task.exit().signal() != 0;
    if (task.ended() && is_bad && (first == nullptr || task.task() < first->task())) {
      first = &task;
    }
  }
  return first != nullptr ? first->exit() : proto::Exit();
}

}  // namespace sekisho
