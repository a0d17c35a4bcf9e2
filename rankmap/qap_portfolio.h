// SPDX-License-Identifier: Apache-2.0
// Several searches for one quadratic assignment, one a thread: at the end of each of its rounds a
// search takes in the best that the others have found.  One thread and a limit in moves give the
// same every time.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "rankmap/portfolio.h"
#include "rankmap/qap_solver.h"

namespace sekisho::rankmap {

class QapPortfolio {
 public:
  // `instance` outlives this.
  QapPortfolio(const QapInstance& instance, QapMethod method, uint64_t seed, int threads);

  // Until a limit is reached or `stop` says so.  `tick` is called on this thread, between steps and
  // during long ones (or every 20 ms beside other threads); it may call best() and Save().
  void Run(const Limits& limits, const Portfolio::Clock& clock, const Stop& stop,
           const Portfolio::Tick& tick);

  QapSolution best() const;

  std::string Save() const;
  absl::Status Restore(std::string_view bytes);

 private:
  void Publish(size_t island);
  Standing StandingAt(const Limits& limits, const Portfolio::Clock& clock) const;
  void RunOne(const Limits& limits, const Portfolio::Clock& clock, const Stop& stop,
              const Portfolio::Tick& tick);
  void RunThread(size_t island, const Portfolio::Clock& clock, const Stop& is_over);

  const QapInstance& instance_;
  std::vector<std::unique_ptr<QapSolver>> solvers_;

  mutable std::mutex mutex_;  // guards what the threads publish
  std::vector<std::string> saved_;
  std::vector<int64_t> moves_;
  QapSolution best_;
  bool is_threaded_ = false;
};

}  // namespace sekisho::rankmap
