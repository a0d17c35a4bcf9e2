// SPDX-License-Identifier: Apache-2.0
// The queue's part about arrays: docs/protocol/18-arrays.md.  An element becomes a job when it starts, or when
// somebody means it alone; until then its array waits in its place, and takes the room of one job.
#include <fmt/format.h>

#include "common/job_state.h"
#include "qserver/queue.h"
#include "rsl/array.h"

namespace sekisho::qserver {
namespace {

// How the array ended, as its elements did.
proto::JobEvent::Ended EndOfArray(const Job& array) {
  const proto::ArrayStatus& status = array.status.array();
  proto::JobEvent::Ended ended;
  if (array.status.cancelling()) {
    ended.set_state(proto::CANCELLED);
    ended.set_gram_code(8);
    ended.set_reason(array.status.reason());
    return ended;
  }
  ended.set_state(proto::DONE);
  ended.mutable_exit();
  const Job* first = nullptr;
  for (const auto& [index, element] : array.elements) {
    const ElementIs as = CountedAs(element->status);
    if (as == ElementIs::kFailed && (first == nullptr || CountedAs(first->status) == ElementIs::kCancelled)) {
      first = element;
    } else if (as == ElementIs::kCancelled && first == nullptr) {
      first = element;
    }
    if (element->status.state() == proto::FAILED) {
      ended.set_state(proto::FAILED);
    }
  }
  if (first == nullptr) {
    return ended;
  }
  if (ended.state() == proto::DONE && status.cancelled() > 0) {
    ended.set_state(proto::CANCELLED);
  }
  *ended.mutable_exit() = first->status.exit();
  ended.set_gram_code(first->status.gram_code());
  ended.set_reason(fmt::format("of {} elements {} failed and {} were cancelled; the first is [{}]: {}", status.elements(),
                               status.failed(), status.cancelled(), first->status.element().index(),
                               first->status.reason()));
  return ended;
}

}  // namespace

const Job* Queue::FindOrArray(const std::string& job_id) const {
  if (const Job* job = Find(job_id)) {
    return job;
  }
  const auto element = SplitElementId(job_id);
  const Job* array = element ? Find(element->first) : nullptr;
  return array != nullptr && HasElement(array->status.array().what(), element->second) ? array : nullptr;
}

const Job* Queue::FindOrArray(const std::string& job_id, const std::string& subject) const {
  const Job* job = FindOrArray(job_id);
  return job != nullptr && job->status.subject() == subject ? job : nullptr;
}

std::string Queue::RslOf(const Job& job) {
  return job.array != nullptr ? rsl::ForElement(job.array->status.rsl(), job.status.element().index())
                              : job.status.rsl();
}

bool Queue::HasItsFill(const Job& element) {
  const int at_once = element.array != nullptr ? element.array->status.array().what().at_once() : 0;
  return at_once > 0 && element.array->elements_at_work >= at_once;
}

void Queue::FoldIntoArray(Job& job, ElementIs before, bool had_processors) {
  Recount(before, CountedAs(job.status), *job.array->status.mutable_array());
  job.array->elements_at_work += int(job.has_processors) - int(had_processors);
}

// ---- Elements come into being

Job& Queue::AddElement(Job& array, const proto::JobEvent& submitted, bool is_archived) {
  auto owned = std::make_unique<Job>();
  Job& job = *owned;
  jobs_[submitted.job_id()] = std::move(owned);
  job.array = &array;
  job.is_archived = is_archived;
  job.unreadable = array.unreadable;
  job.priority = array.priority;
  CHECK(Fold(job, submitted).ok());
  job.status.set_submitted_ms(array.status.submitted_ms());
  job.bytes = submitted.submitted().ByteSizeLong();

  Admitted admitted;
  admitted.gatekeeper_subject = *array.gatekeeper_subject;
  admitted.demand = *array.demand;
  Adopt(job, std::move(admitted));
  job.resource = array.resource;

  array.elements[submitted.submitted().element().index()] = &job;
  for (;;) {
    const auto next = ElementFrom(array.status.array().what(), array.next_element);
    if (!next || array.elements.count(*next) == 0) {
      break;
    }
    array.next_element = int64_t(*next) + 1;
  }
  Place(array);
  return job;
}

Job& Queue::MakeElement(Job& array, int index, int64_t now_ms, Effects& effects) {
  proto::JobEvent event;
  event.set_job_id(ElementId(array.status.job_id(), index));
  event.set_time_ms(now_ms);
  proto::JobEvent::Submitted& submitted = *event.mutable_submitted();
  submitted.set_site(array.status.site());
  submitted.set_subject(array.status.subject());
  submitted.set_account(array.status.account());
  submitted.set_service(array.status.service());
  submitted.set_count(array.status.count());
  submitted.set_executable(array.status.executable());
  submitted.set_queue(array.status.queue());
  submitted.set_project(array.status.project());
  submitted.mutable_element()->set_array(array.status.job_id());
  submitted.mutable_element()->set_index(index);
  Job& job = AddElement(array, event, false);
  effects.events.push_back(std::move(event));
  return job;
}

absl::Status Queue::ReplayElement(const proto::JobEvent& event, bool has_ended) {
  Job* array = FindMutable(event.submitted().element().array());
  if (array == nullptr || !array->status.has_array() || Find(event.job_id()) != nullptr) {
    return absl::DataLossError(fmt::format("event {} is of an element of an unknown array", event.sequence()));
  }
  AddElement(*array, event, has_ended || array->is_archived);
  return absl::OkStatus();
}

Job* Queue::FindOrMake(const std::string& job_id, int64_t now_ms, Effects& effects) {
  Job* job = const_cast<Job*>(FindOrArray(job_id));
  const bool is_unmade = job != nullptr && job->status.job_id() != job_id;
  if (is_unmade && (IsFinal(job->status.state()) || job->status.cancelling())) {
    return job;  // nothing of it will be
  }
  return is_unmade ? &MakeElement(*job, SplitElementId(job_id)->second, now_ms, effects) : job;
}

// ---- The allocator

void Queue::AskForElements(const Job& array, int most, proto::DecideRequest& request) const {
  const proto::JobEvent::Array& what = array.status.array().what();
  int room = what.at_once() > 0 ? std::min(most, what.at_once() - array.elements_at_work) : most;
  for (auto index = ElementFrom(what, array.next_element); index && room > 0;
       index = ElementFrom(what, int64_t(*index) + 1)) {
    if (array.elements.count(*index) == 0) {
      AddDemand(array, ElementId(array.status.job_id(), *index), request);
      --room;
    }
  }
}

void Queue::OnElementDecision(const proto::Decision& decision, Breadth breadth, int64_t now_ms, Effects& effects) {
  Job* array = const_cast<Job*>(FindOrArray(decision.job_id()));
  if (array == nullptr || pending_.count(OrderOf(*array)) == 0) {
    return;  // it ended while the allocator thought
  }
  const int index = SplitElementId(decision.job_id())->second;
  const int at_once = array->status.array().what().at_once();
  if (decision.has_start() && (at_once == 0 || array->elements_at_work < at_once)) {
    Start(MakeElement(*array, index, now_ms, effects), decision.start(), now_ms, effects);
  } else if (!decision.has_start() && ElementFrom(array->status.array().what(), array->next_element) == index) {
    RecordWait(*array, decision, breadth, now_ms, effects);  // that of its first
  }
}

// ---- Beginning and end

void Queue::BeginArray(Job& job, int64_t now_ms, Effects& effects) {
  if (job.array != nullptr && job.array->status.state() == proto::PENDING) {
    proto::JobEvent begun;
    begun.mutable_begun();
    Emit(*job.array, std::move(begun), now_ms, effects);
  }
}

void Queue::EndArrayIfComplete(Job& array, int64_t now_ms, Effects& effects) {
  const proto::ArrayStatus& status = array.status.array();
  const int ended = status.done() + status.failed() + status.cancelled();
  const int expected = array.status.cancelling() ? int(array.elements.size()) : status.elements();
  if (!IsFinal(array.status.state()) && ended == expected) {
    End(array, EndOfArray(array), now_ms, effects);
  }
}

void Queue::CancelArray(Job& array, int64_t now_ms, Effects& effects) {
  for (const auto& [index, element] : array.elements) {
    const auto cancelled = Cancel(element->status.job_id(), "its array was cancelled", now_ms);
    CHECK(cancelled.ok());
    effects.Add(*cancelled);
  }
  EndArrayIfComplete(array, now_ms, effects);
}

}  // namespace sekisho::qserver
