// SPDX-License-Identifier: Apache-2.0
#include "qserver/demand.h"

#include <algorithm>
#include <limits>

namespace sekisho::qserver {

proto::Demand MakeDemand(const std::string& job_id, const rsl::JobDescription& job,
                         int64_t wall_time_max_s) {
  const auto clamp = [](int64_t value) {
    return int(std::clamp<int64_t>(value, 0, std::numeric_limits<int>::max()));
  };
  proto::Demand demand;
  demand.set_job_id(job_id);
  // A single process may use them all: `count` is what it asks for, whoever starts the processes.
  demand.set_processes(clamp(std::max(job.count, job.host_count.value_or(1))));
  demand.set_host_count(clamp(job.host_count.value_or(0)));
  demand.set_wall_time_s(job.WallTimeMinutes().value_or(0) * 60);
  if (wall_time_max_s > 0 && demand.wall_time_s() == 0) {
    demand.set_wall_time_s(wall_time_max_s);
  }
  demand.set_queue(job.queue);
  demand.set_exclusive(job.is_exclusive);
  for (const rsl::Condition& condition : job.conditions) {
    proto::Demand::Condition& out = *demand.add_condition();
    out.set_attribute(condition.attribute);
    out.set_op(std::string(rsl::ToText(condition.op)));
    for (const std::string& value : condition.values) {
      out.add_value(value);
    }
  }
  if (job.min_memory_mb && *job.min_memory_mb > 0) {
    proto::Demand::Condition& out = *demand.add_condition();
    out.set_attribute("memory");
    out.set_op(">=");
    out.add_value(std::to_string(*job.min_memory_mb));
  }
  return demand;
}

}  // namespace sekisho::qserver
