// SPDX-License-Identifier: Apache-2.0
// The other processes of a measurement.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <functional>

namespace sekisho::pm {

// Ends this process, with errno if there is one.
[[noreturn]] void Die(const char* what);

inline constexpr int kAnyCore = -1;
void Pin(int core);

// Of this process.
double ProcessorSeconds();

// Does `work` until it or its parent ends; stopped but between Go and Stop, lest it takes a core
// from others.
class BenchProcess {
 public:
  BenchProcess(int core, const std::function<void()>& work);
  ~BenchProcess();
  BenchProcess(const BenchProcess&) = delete;
  BenchProcess& operator=(const BenchProcess&) = delete;

  void Go();
  void Stop();  // when it returns, the process does nothing more
  double processor_seconds() const;

 private:
  pid_t pid_;
  bool goes_ = true;
  clockid_t clock_;
};

}  // namespace sekisho::pm
