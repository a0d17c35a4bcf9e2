// SPDX-License-Identifier: Apache-2.0
// Several searches side by side, one a thread, that share the best.  One thread and a limit in
// moves give the same placement every time.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rankmap/solver.h"

namespace sekisho::rankmap {

struct Limits {
  int64_t moves = 0;  // of all threads together; 0: by time
  double until = 0;   // on the caller's clock
  double started = 0;
  std::optional<double> target;  // good enough
};

struct Standing {
  double best = 0;
  double bound = 0;
  double progress = 0;  // of the budget
  int64_t moves = 0;
  std::string_view phase;
};

class Portfolio {
 public:
  // `island`: the number of the first thread's search, where other processes search too.
  Portfolio(const Problem& problem, int threads, const Placement* start, int island = 0);

  using Clock = std::function<double()>;
  using Tick = std::function<void(const Standing&)>;

  // Until a limit is reached, nothing is left to do, or `stop` says so.  `tick` is called on this
  // thread between steps and during long ones (or every 20 ms beside other threads); it may call best(), Save() and Offer().
  void Run(const Limits& limits, const Clock& clock, const Stop& stop, const Tick& tick);

  Placement best() const;
  double best_value() const;

  // What another process has found, worth `value`.
  void Offer(const Placement& placement, double value);

  std::string Save() const;
  absl::Status Restore(std::string_view bytes);

 private:
  double ProgressAt(const Limits& limits, const Clock& clock) const;
  void RunOne(const Limits& limits, const Clock& clock, const Stop& stop, const Tick& tick);
  void RunThread(size_t island, const Limits& limits, const Clock& clock, const Stop& is_over);

  const Problem& problem_;
  std::vector<std::unique_ptr<Solver>> solvers_;
  double progress_ = 0;  // where a resumed run begins
  double resumed_ = 0;

  mutable std::mutex mutex_;  // guards what the threads publish
  std::vector<std::string> saved_;
  std::vector<int64_t> moves_;
  Placement shared_;
  double shared_value_ = 0;
  std::string_view phase_;
  bool is_threaded_ = false;
};

}  // namespace sekisho::rankmap
