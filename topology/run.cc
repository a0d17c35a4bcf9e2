// SPDX-License-Identifier: Apache-2.0
#include "topology/run.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace sekisho::topology {
namespace {

struct UnderWay {
  double end_us;
  long number;  // ties end in the order in which they began
  Request request;
  Answer answer;
};

struct EndsLater {
  bool operator()(const UnderWay& a, const UnderWay& b) const {
    return a.end_us != b.end_us ? a.end_us > b.end_us : a.number > b.number;
  }
};

}  // namespace

absl::StatusOr<RunTotals> RunVirtually(Method& method, const Measure& measure,
                                       double turnaround_us) {
  RunTotals totals;
  std::priority_queue<UnderWay, std::vector<UnderWay>, EndsLater> under_way;
  double now_us = 0;
  for (;;) {
    for (const Request& request : method.Next()) {
      ASSIGN_OR_RETURN(const Answer answer, measure(request, now_us));
      totals.pings += answer.pings;
      totals.relayed += answer.is_relayed ? 1 : 0;
      totals.makespan_us = std::max(totals.makespan_us, now_us + answer.duration_us);
      under_way.push({std::ceil(now_us + answer.duration_us + turnaround_us), totals.measurements++,
                      request, answer});
    }
    if (under_way.empty()) {
      return totals;
    }
    now_us = under_way.top().end_us;
    while (!under_way.empty() && under_way.top().end_us <= now_us) {
      method.Report(under_way.top().request, under_way.top().answer);
      under_way.pop();
    }
  }
}

}  // namespace sekisho::topology
