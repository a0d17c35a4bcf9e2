// SPDX-License-Identifier: Apache-2.0
// The other processes of a measurement.
#include "transport/pm/bench_process.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sekisho::pm {
namespace {

double Seconds(clockid_t clock) {
  timespec now;
  if (clock_gettime(clock, &now) != 0) Die("clock_gettime");
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

void Die(const char* what) {
  fprintf(stderr, "sekisho-pm-bench: %s: %s\n", what, errno != 0 ? strerror(errno) : "unexpected");
  _exit(1);
}

void Pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (core == kAnyCore || core == i) CPU_SET(i, &set);
  }
  (void)sched_setaffinity(0, sizeof set, &set);  // with one core there is nothing to choose
}

double ProcessorSeconds() { return Seconds(CLOCK_PROCESS_CPUTIME_ID); }

BenchProcess::BenchProcess(int core, const std::function<void()>& work) : pid_(fork()) {
  if (pid_ < 0) Die("fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Pin(core);
    work();
    _exit(0);
  }
  Stop();
  if (clock_getcpuclockid(pid_, &clock_) != 0) Die("clock_getcpuclockid");
}

BenchProcess::~BenchProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void BenchProcess::Go() {
  kill(pid_, SIGCONT);
  goes_ = true;
}

// On a busy machine it may be long until it gets the signal.
void BenchProcess::Stop() {
  if (!goes_) return;
  kill(pid_, SIGSTOP);
  int status;
  if (waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status)) {
    errno = 0;
    Die("a process of the measurement ended");
  }
  goes_ = false;
}

double BenchProcess::processor_seconds() const { return Seconds(clock_); }

}  // namespace sekisho::pm
