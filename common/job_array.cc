// SPDX-License-Identifier: Apache-2.0
#include "common/job_array.h"

#include <charconv>

#include <fmt/format.h>

#include "common/job_state.h"

namespace sekisho {
namespace {

int32_t Count(ElementIs what, const proto::ArrayStatus& array) {
  switch (what) {
    case ElementIs::kWaiting:
      return array.waiting();
    case ElementIs::kRunning:
      return array.running();
    case ElementIs::kSuspended:
      return array.suspended();
    case ElementIs::kDone:
      return array.done();
    case ElementIs::kFailed:
      return array.failed();
    case ElementIs::kCancelled:
      return array.cancelled();
  }
  return 0;
}

void SetCount(ElementIs what, int32_t count, proto::ArrayStatus& array) {
  switch (what) {
    case ElementIs::kWaiting:
      return array.set_waiting(count);
    case ElementIs::kRunning:
      return array.set_running(count);
    case ElementIs::kSuspended:
      return array.set_suspended(count);
    case ElementIs::kDone:
      return array.set_done(count);
    case ElementIs::kFailed:
      return array.set_failed(count);
    case ElementIs::kCancelled:
      return array.set_cancelled(count);
  }
}

}  // namespace

std::string ElementId(const std::string& array_id, int index) {
  return fmt::format("{}[{}]", array_id, index);
}

std::optional<std::pair<std::string, int>> SplitElementId(const std::string& id) {
  const size_t bracket = id.find('[');
  if (bracket == std::string::npos || id.back() != ']') {
    return std::nullopt;
  }
  int index = 0;
  const char* const begin = id.data() + bracket + 1;
  const char* const end = id.data() + id.size() - 1;
  const auto [stop, error] = std::from_chars(begin, end, index);
  const bool is_plain = begin < end && (*begin != '0' || end - begin == 1);  // one name for one element
  if (error != std::errc() || stop != end || index < 0 || !is_plain) {
    return std::nullopt;
  }
  return std::pair(id.substr(0, bracket), index);
}

int64_t ElementCount(const proto::JobEvent::Array& array) {
  int64_t count = 0;
  for (const auto& range : array.range()) {
    count += (int64_t(range.last()) - range.first()) / range.step() + 1;
  }
  return count;
}

bool HasElement(const proto::JobEvent::Array& array, int64_t index) {
  const auto found = ElementFrom(array, index);
  return found && *found == index;
}

std::optional<int> ElementFrom(const proto::JobEvent::Array& array, int64_t from) {
  for (const auto& range : array.range()) {
    if (from <= range.first()) {
      return range.first();
    }
    const int64_t steps = (from - range.first() + range.step() - 1) / range.step();
    if (const int64_t index = range.first() + steps * range.step(); index <= range.last()) {
      return int(index);
    }
  }
  return std::nullopt;
}

std::string ArrayText(const proto::JobEvent::Array& array) {
  std::string text;
  for (const auto& range : array.range()) {
    text += text.empty() ? "" : ",";
    text += std::to_string(range.first());
    text += range.last() != range.first() ? fmt::format("-{}", range.last()) : "";
    text += range.step() != 1 ? fmt::format(":{}", range.step()) : "";
  }
  return array.at_once() > 0 ? fmt::format("{}%{}", text, array.at_once()) : text;
}

ElementIs CountedAs(const proto::JobStatus& element) {
  switch (element.state()) {
    case proto::DONE:
      return element.exit().code() == 0 ? ElementIs::kDone : ElementIs::kFailed;
    case proto::FAILED:
      return ElementIs::kFailed;
    case proto::CANCELLED:
      return ElementIs::kCancelled;
    case proto::SUSPENDED:
      return ElementIs::kSuspended;
    case proto::ACTIVE:
      return ElementIs::kRunning;
    default:
      return ElementIs::kWaiting;
  }
}

void Recount(ElementIs before, ElementIs after, proto::ArrayStatus& array) {
  SetCount(before, Count(before, array) - 1, array);
  SetCount(after, Count(after, array) + 1, array);
}

proto::JobStatus UnmadeElement(const proto::JobStatus& array, int index) {
  proto::JobStatus element = array;
  element.set_job_id(ElementId(array.job_id(), index));
  element.clear_array();
  element.clear_rsl();
  element.clear_exit();
  element.clear_gram_code();
  element.clear_started_ms();
  element.clear_remedy();
  element.mutable_element()->set_array(array.job_id());
  element.mutable_element()->set_index(index);
  if (IsFinal(array.state())) {
    element.set_state(proto::CANCELLED);
    element.set_gram_code(8);
    element.set_reason("its array ended before it started");
  } else {
    element.set_state(proto::PENDING);
    element.set_reason(array.state() == proto::PENDING && !array.reason().empty()
                           ? array.reason()
                           : "waits for its turn in the array");
  }
  return element;
}

}  // namespace sekisho
