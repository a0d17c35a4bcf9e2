// SPDX-License-Identifier: Apache-2.0
#include "agent/keeper.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>

#include "agent/task/group.h"
#include "common/log.h"

namespace sekisho::agent {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kCannotRun = 127;  // as a shell says it
constexpr int kKillPasses = 200;
constexpr milliseconds kKillPause{10};

int CodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

class Keeper {
 public:
  Keeper(const std::vector<std::string>& words, const Restarts::Limits& limits) : restarts_(limits) {
    for (const std::string& word : words) {
      words_.push_back(const_cast<char*>(word.c_str()));
    }
    words_.push_back(nullptr);
    sigset_t all;  // taken in turn; what a user sends to all processes of his job is not meant for us
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask_before_);
    std::signal(SIGCHLD, SIG_DFL);
    sigemptyset(&awaited_);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT}) {
      sigaddset(&awaited_, signal);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  }

  int Run() {
    for (int life = 1;; ++life) {
      const Clock::time_point began = Clock::now();
      const int status = Live();
      // What goes wrong at the very start goes wrong again, and nothing is lost by it yet.
      const bool is_death = WIFSIGNALED(status) || (life > 1 && WEXITSTATUS(status) != 0);
      if (!is_death || is_told_) {
        return CodeOf(status);
      }
      const auto pause = restarts_.OnDeath(std::chrono::duration_cast<milliseconds>(Clock::now() - began));
      if (!pause) {
        spdlog::error("it has died too often, with {} at last: given up", CodeOf(status));
        return 1;
      }
      spdlog::warn("it has died with {}: started again in {} ms", CodeOf(status), pause->count());
      for (const auto due = Clock::now() + *pause; Clock::now() < due && !is_told_;) {
        Await(std::chrono::ceil<milliseconds>(due - Clock::now()));
      }
      if (is_told_) {
        return CodeOf(status);
      }
    }
  }

  // The batch system does so too, but does not find all where it has no control groups.
  void KillRest() {
    task::Group rest(task::Grouping::kNone, "", getpid());
    for (int pass = 0; pass < kKillPasses && HasChildren(); ++pass) {
      rest.KillOnce(true);
      Await(kKillPause);
    }
  }

 private:
  // One life: how it ended, as waitpid says it.
  int Live() {
    const pid_t us = getpid();
    child_ = fork();
    if (child_ == 0) {
      sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
      prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
      if (getppid() == us) {
        execv(words_[0], words_.data());
      }
      _exit(kCannotRun);
    }
    end_ = child_ > 0 ? std::nullopt : std::optional(W_EXITCODE(kCannotRun, 0));
    while (!end_) {
      Await(milliseconds(60'000));
    }
    child_ = -1;
    return *end_;
  }

  // For a signal, at most so long.
  void Await(milliseconds most) {
    const timespec time{.tv_sec = most.count() / 1000, .tv_nsec = most.count() % 1000 * 1'000'000};
    const int signal = sigtimedwait(&awaited_, nullptr, &time);
    if (signal == SIGCHLD) {
      HasChildren();
    } else if (signal > 0) {
      is_told_ = true;
      if (child_ > 0) {
        kill(child_, signal);
      }
    }
  }

  // Takes the ends of those that have ended; false: nobody is left.
  bool HasChildren() {
    for (;;) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid <= 0) {
        return pid == 0;
      }
      if (pid == child_) {
        end_ = status;
      }
    }
  }

  Restarts restarts_;
  std::vector<char*> words_;
  sigset_t mask_before_{};
  sigset_t awaited_{};
  pid_t child_ = -1;
  std::optional<int> end_;
  bool is_told_ = false;
};

}  // namespace

std::optional<milliseconds> Restarts::OnDeath(milliseconds lived) {
  if (lived >= limits_.long_life) {
    short_lives_ = 0;
    pause_ = milliseconds(0);
  }
  if (++short_lives_ >= limits_.most) {
    return std::nullopt;
  }
  pause_ = std::clamp(pause_ * 2, limits_.first_pause, limits_.longest_pause);
  return pause_;
}

int Keep(const std::vector<std::string>& words, const Restarts::Limits& limits) {
  Keeper keeper(words, limits);
  const int code = keeper.Run();
  keeper.KillRest();
  return code;
}

}  // namespace sekisho::agent
