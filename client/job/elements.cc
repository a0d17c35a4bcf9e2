// SPDX-License-Identifier: Apache-2.0
#include "client/job/elements.h"

#include <fmt/format.h>

#include "common/job_array.h"
#include "common/refusal.h"
#include "rsl/array.h"

namespace sekisho::client {
namespace {

constexpr size_t kMost = 10'000;  // of one command

absl::Status BadElements(const std::string& name) {
  return Refuse(absl::StatusCode::kInvalidArgument, 0,
                fmt::format("'{}': expected JOB[INDICES], indices ascending, e.g. JOB[7] or JOB[1,3-7,10-20:2]", name),
                "the indices of an array: sekisho status JOB");
}

absl::Status TooMany() {
  return Refuse(absl::StatusCode::kInvalidArgument, 0, fmt::format("expected at most {} jobs", kMost),
                "name fewer of them at a time, or the whole array");
}

}  // namespace

bool NamesElements(const std::string& job) {
  return !job.empty() && job.back() == ']' && job.find('[') != std::string::npos;
}

absl::StatusOr<std::vector<std::string>> ExpandElements(const std::vector<std::string>& jobs) {
  std::vector<std::string> names;
  for (const std::string& job : jobs) {
    if (!NamesElements(job)) {
      names.push_back(job);
      continue;
    }
    const size_t open = job.rfind('[');
    const auto indices = rsl::ParseArray(job.substr(open + 1, job.size() - open - 2));
    if (!indices || indices->at_once != 0) {
      return BadElements(job);
    }
    const proto::JobEvent::Array array = MakeArray(indices->ranges, 0);
    if (names.size() + size_t(ElementCount(array)) > kMost) {
      return TooMany();
    }
    for (auto index = ElementFrom(array, 0); index; index = ElementFrom(array, int64_t(*index) + 1)) {
      names.push_back(ElementId(job.substr(0, open), *index));
    }
  }
  if (names.size() > kMost) {
    return TooMany();
  }
  return names;
}

std::vector<std::string> ElementIds(const proto::JobStatus& array) {
  std::vector<std::string> ids;
  for (auto index = ElementFrom(array.array().what(), 0); index;
       index = ElementFrom(array.array().what(), int64_t(*index) + 1)) {
    ids.push_back(ElementId(array.job_id(), *index));
  }
  return ids;
}

}  // namespace sekisho::client
