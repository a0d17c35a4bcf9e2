// SPDX-License-Identifier: Apache-2.0
// Runs a few small threads in every order of their steps, by replay from the beginning.  A step
// ends where a thread touches something shared, see Explorer::Step.  What a thread will do follows
// from what it has seen, so that a state that was met before needs no second look.  For tests.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

namespace sekisho::pm {

class Explorer {
 public:
  // Called by threads before each access to what is shared, and with what the access brought.
  static void Step() {
    Observe(1);
    Fiber& fiber = *current_->fibers_[current_->running_];
    if (_setjmp(fiber.at) == 0) _longjmp(current_->home_, 1);
  }
  static std::size_t Running() { return current_->running_; }
  static void Observe(std::uint64_t value) {
    Mix(current_->fibers_[current_->running_]->seen, value);
  }
  // A thread that begins again what it tried in vain has forgotten what it saw.
  static std::uint64_t Memory() { return current_->fibers_[current_->running_]->seen; }
  static void Forget(std::uint64_t memory) { current_->fibers_[current_->running_]->seen = memory; }
  static void Mix(std::uint64_t& digest, std::uint64_t value) {
    digest = (digest ^ value) * 0x9e3779b97f4a7c15;
    digest ^= digest >> 29;
  }

  struct Model {
    virtual ~Model() = default;
    virtual std::size_t threads() const = 0;
    virtual void Run(std::size_t thread) = 0;
    // Whether the scheduler may let it go on: it is neither stopped nor dead nor waits.
    virtual bool Enabled(std::size_t thread) const = 0;
    // Things that may happen to threads between steps.
    virtual std::size_t faults() const = 0;
    virtual bool FaultPossible(std::size_t fault) const = 0;
    virtual void Happen(std::size_t fault) = 0;
    // All that decides the future but what threads have seen.
    virtual std::uint64_t Digest() const = 0;
    // After the last step.
    virtual void Finish() = 0;
  };

  // Every schedule of the models that `make` makes; how many states there were.
  std::size_t Explore(const std::function<std::unique_ptr<Model>()>& make) {
    path_.clear();
    met_.clear();
    do {
      RunOnce(*make());
    } while (NextPath());
    return met_.size();
  }

  // The thread starts anew, for models in which a dead one is replaced.
  void Restart(std::size_t thread) {
    fibers_[thread]->started = false;
    fibers_[thread]->done = false;
    fibers_[thread]->seen = 0;
  }
  bool IsDone(std::size_t thread) const { return fibers_[thread]->done; }
  // Steps that a thread has made, for those that wait until another made one.
  std::uint64_t steps(std::size_t thread) const { return fibers_[thread]->steps; }

 private:
  struct Fiber {
    std::vector<char> stack = std::vector<char>(32 * 1024);
    ucontext_t context;
    jmp_buf at;
    bool started = false, done = false;
    std::uint64_t steps = 0;
    std::uint64_t seen = 0;
  };
  struct Choice {
    std::size_t taken = 0, options = 0;
  };

  static void Entry() {
    Explorer& self = *current_;
    self.model_->Run(self.running_);
    self.fibers_[self.running_]->done = true;
    _longjmp(self.home_, 1);
  }

  void Resume(std::size_t thread) {
    Fiber& fiber = *fibers_[thread];
    ++fiber.steps;
    running_ = thread;
    current_ = this;
    if (_setjmp(home_) != 0) return;
    if (fiber.started) _longjmp(fiber.at, 1);
    fiber.started = true;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, Entry, 0);
    setcontext(&fiber.context);
  }

  std::size_t Choose(std::size_t options) {
    if (depth_ == path_.size()) path_.push_back({0, options});
    return path_[depth_++].taken;
  }

  bool NextPath() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().options) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }

  bool MetBefore(const Model& model) {
    std::uint64_t digest = model.Digest();
    for (const auto& fiber : fibers_) Mix(digest, fiber->seen * 2 + (fiber->done ? 1 : 0));
    return !met_.insert(digest).second;
  }

  void RunOnce(Model& model) {
    model_ = &model;
    depth_ = 0;
    fibers_.resize(model.threads());
    for (auto& fiber : fibers_) {
      if (!fiber) fiber = std::make_unique<Fiber>();
      fiber->started = fiber->done = false;
      fiber->steps = fiber->seen = 0;
    }
    for (;;) {
      if (depth_ == path_.size() && MetBefore(model)) return;
      options_.clear();
      for (std::size_t thread = 0; thread < model.threads(); ++thread) {
        if (!fibers_[thread]->done && model.Enabled(thread)) options_.push_back(thread);
      }
      const std::size_t threads = options_.size();
      for (std::size_t fault = 0; fault < model.faults(); ++fault) {
        if (model.FaultPossible(fault)) options_.push_back(fault);
      }
      if (options_.empty()) break;
      const std::size_t chosen = Choose(options_.size());
      if (chosen >= threads) {
        model.Happen(options_[chosen]);
      } else {
        Resume(options_[chosen]);
      }
    }
    model.Finish();
  }

  static inline Explorer* current_ = nullptr;
  Model* model_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Choice> path_;
  std::unordered_set<std::uint64_t> met_;
  std::vector<std::size_t> options_;
  std::size_t depth_ = 0;
  std::size_t running_ = 0;
  jmp_buf home_;
};

}  // namespace sekisho::pm
