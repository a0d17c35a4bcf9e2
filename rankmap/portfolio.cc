// SPDX-License-Identifier: Apache-2.0
#include "rankmap/portfolio.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <numeric>
#include <thread>

#include "rankmap/archive.h"
#include "rankmap/errors.h"

namespace sekisho::rankmap {
namespace {

constexpr uint64_t kMagic = 0x31'70616d'6b6e6172;  // "rankmap1"
constexpr double kPublishEvery = 1.0;              // seconds
constexpr auto kTickEvery = std::chrono::milliseconds(20);

}  // namespace

Portfolio::Portfolio(const Problem& problem, int threads, const Placement* start, int island)
    : problem_(problem), saved_(threads), moves_(threads) {
  for (int thread = 0; thread < threads; ++thread) {
    solvers_.push_back(std::make_unique<Solver>(problem, island + thread, start));
  }
  shared_ = solvers_[0]->best();
  shared_value_ = solvers_[0]->best_value();
}

Placement Portfolio::best() const {
  const std::lock_guard lock(mutex_);
  return is_threaded_ ? shared_ : solvers_[0]->best();
}

double Portfolio::best_value() const {
  const std::lock_guard lock(mutex_);
  return is_threaded_ ? shared_value_ : solvers_[0]->best_value();
}

void Portfolio::Offer(const Placement& placement, double value) {
  const std::lock_guard lock(mutex_);
  if (!is_threaded_) {
    solvers_[0]->Offer(placement, value);
  } else if (value < shared_value_) {  // the threads take it from here
    shared_ = placement;
    shared_value_ = value;
  }
}

double Portfolio::ProgressAt(const Limits& limits, const Clock& clock) const {
  if (limits.moves > 0) {
    const int64_t done = is_threaded_ ? std::accumulate(moves_.begin(), moves_.end(), int64_t{0})
                                      : solvers_[0]->moves();
    return static_cast<double>(done) / static_cast<double>(limits.moves);
  }
  const double length = std::max(limits.until - limits.started, 1e-9);
  return resumed_ + (1 - resumed_) * (clock() - limits.started) / length;
}

void Portfolio::Run(const Limits& limits, const Clock& clock, const Stop& stop, const Tick& tick) {
  if (solvers_.size() == 1) {
    return RunOne(limits, clock, stop, tick);
  }
  is_threaded_ = true;
  std::atomic<bool> is_stopped = false;
  size_t running = solvers_.size();  // under the mutex
  std::condition_variable is_last;
  const Stop is_over = [&] { return is_stopped.load(std::memory_order_relaxed); };
  std::vector<std::thread> threads;
  for (size_t island = 0; island < solvers_.size(); ++island) {
    threads.emplace_back([&, island] {
      RunThread(island, limits, clock, is_over);
      const std::lock_guard lock(mutex_);
      --running;
      is_last.notify_one();
    });
  }
  for (bool are_all_done = false; !are_all_done;) {
    Standing standing;
    {
      std::unique_lock lock(mutex_);
      are_all_done = is_last.wait_for(lock, kTickEvery, [&] { return running == 0; });
      progress_ = ProgressAt(limits, clock);
      standing = {shared_value_, problem_.bound, progress_,
                  std::accumulate(moves_.begin(), moves_.end(), int64_t{0}), phase_};
    }
    tick(standing);
    if (stop() || progress_ >= 1 || (limits.target && standing.best <= *limits.target)) {
      is_stopped.store(true);
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void Portfolio::RunThread(size_t island, const Limits& limits, const Clock& clock,
                          const Stop& is_over) {
  Solver& solver = *solvers_[island];
  double published = clock();
  while (!is_over() && !solver.is_done()) {
    double progress = 0;
    {
      const std::lock_guard lock(mutex_);
      progress = ProgressAt(limits, clock);
    }
    solver.Step(progress, is_over);
    const double now = clock();
    const std::lock_guard lock(mutex_);
    moves_[island] = solver.moves();
    if (island == 0) {
      phase_ = solver.phase();
    }
    if (solver.best_value() < shared_value_) {
      shared_value_ = solver.best_value();
      shared_ = solver.best();
    } else if (shared_value_ < solver.best_value() && now - published > kPublishEvery) {
      solver.Offer(shared_, shared_value_);
    }
    if (now - published > kPublishEvery) {
      saved_[island] = solver.Save();
      published = now;
    }
  }
  const std::lock_guard lock(mutex_);
  saved_[island] = solver.Save();
}

void Portfolio::RunOne(const Limits& limits, const Clock& clock, const Stop& stop,
                       const Tick& tick) {
  Solver& solver = *solvers_[0];
  const auto show = [&] {
    tick({solver.best_value(), problem_.bound, progress_, solver.moves(), solver.phase()});
  };
  // Constructions ask this every now and then; what is saved meanwhile is the state before them.
  const Stop is_over = [&] {
    show();
    return stop() || (limits.moves == 0 && clock() >= limits.until);
  };
  while (!solver.is_done()) {
    progress_ = ProgressAt(limits, clock);
    show();
    if (progress_ >= 1 || is_over() || (limits.target && solver.best_value() <= *limits.target)) {
      break;
    }
    solver.Step(progress_, is_over);
  }
}

std::string Portfolio::Save() const {
  const std::lock_guard lock(mutex_);
  ArchiveWriter out;
  out.Put(kMagic);
  out.Put<uint64_t>(solvers_.size());
  out.Put(progress_);
  for (size_t i = 0; i < solvers_.size(); ++i) {
    const std::string bytes = is_threaded_ ? saved_[i] : solvers_[i]->Save();
    out.PutList(std::vector<char>(bytes.begin(), bytes.end()));
  }
  // Threads may have published a better one since they were saved.
  out.PutList(is_threaded_ ? shared_.slots() : solvers_[0]->best().slots());
  return std::move(out).Finish();
}

absl::Status Portfolio::Restore(std::string_view bytes) {
  ArchiveReader in(bytes);
  if (!in.is_good() || in.Get<uint64_t>() != kMagic) {
    return errors::BadCheckpoint("not one of ours, damaged or cut off");
  }
  const uint64_t count = in.Get<uint64_t>();
  if (!in.is_good() || count != solvers_.size()) {
    return errors::BadCheckpoint(
        fmt::format("of a run with {} threads, not {}", count, solvers_.size()));
  }
  resumed_ = std::clamp(in.Get<double>(), 0.0, 0.95);
  for (size_t i = 0; i < count; ++i) {
    const std::vector<char> part = in.GetList<char>();
    if (!in.is_good()) {
      return errors::BadCheckpoint("damaged");
    }
    if (!part.empty()) {  // a thread that had not published yet begins anew
      RETURN_IF_ERROR(solvers_[i]->Restore({part.data(), part.size()}));
    }
    moves_[i] = solvers_[i]->moves();
    saved_[i] = std::string(part.begin(), part.end());
    if (solvers_[i]->best_value() < shared_value_) {
      shared_value_ = solvers_[i]->best_value();
      shared_ = solvers_[i]->best();
    }
  }
  const std::vector<uint32_t> best = in.GetList<uint32_t>();
  if (!in.is_finished() || !IsPermutation(best, problem_.network.slots())) {
    return errors::BadCheckpoint("damaged");
  }
  if (const double value = problem_.Value(Placement(best)); value < shared_value_) {
    shared_ = Placement(best);
    shared_value_ = value;
  }
  return absl::OkStatus();
}

}  // namespace sekisho::rankmap
