// SPDX-License-Identifier: Apache-2.0
// Arrays of jobs: docs/protocol/18-arrays.md.  Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "proto/job.pb.h"

namespace sekisho {

// "JOB[INDEX]".
std::string ElementId(const std::string& array_id, int index);
// The array and the index; none if `id` names no element.
std::optional<std::pair<std::string, int>> SplitElementId(const std::string& id);

// How many elements.
int64_t ElementCount(const proto::JobEvent::Array& array);
bool HasElement(const proto::JobEvent::Array& array, int64_t index);
// The least index that is at least `from`; none if there is no more.
std::optional<int> ElementFrom(const proto::JobEvent::Array& array, int64_t from);
// As RSL has it: "1-10:2,17%3".
std::string ArrayText(const proto::JobEvent::Array& array);

// From anything that has first, last and step.
template <typename Ranges>
proto::JobEvent::Array MakeArray(const Ranges& ranges, int at_once) {
  proto::JobEvent::Array array;
  for (const auto& range : ranges) {
    auto& made = *array.add_range();
    made.set_first(range.first);
    made.set_last(range.last);
    made.set_step(range.step);
  }
  array.set_at_once(at_once);
  return array;
}

// What one of `array`'s elements is counted as; one that does not exist yet waits.
enum class ElementIs { kWaiting, kRunning, kSuspended, kDone, kFailed, kCancelled };
ElementIs CountedAs(const proto::JobStatus& element);
// An element has changed.
void Recount(ElementIs before, ElementIs after, proto::ArrayStatus& array);

// An element that does not exist yet, as its array's status tells of it.
proto::JobStatus UnmadeElement(const proto::JobStatus& array, int index);

}  // namespace sekisho
