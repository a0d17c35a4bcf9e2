// SPDX-License-Identifier: Apache-2.0
// A job whose nodes know nothing of each other but their launcher's key-value space: rank 0 makes
// the key, each puts where it listens.  docs/operations/pm.md, "Without a job file".
#pragma once

#include "transport/pm/job_file.h"
#include "transport/pm/pmi.h"

namespace sekisho::pm {

// All ranks do the same in the same order, and wait for each other.  Who cannot open its context
// makes all fail.
class PmiJob {
 public:
  // The job but for its addresses, and which node of it we are.
  std::error_code Begin(JobFile& job, NodeId& node);
  // Once our context listens: where all do.
  std::error_code Meet(const Address& own, JobFile& job);
  // Or if it cannot: the others learn it.
  void Withdraw();

 private:
  std::error_code MakeKey();
  std::error_code TakeKey(JobFile& job);

  Pmi pmi_;
  unsigned opening_ = 0;  // of this program, and so of the others
};

// The address at which other hosts reach this one: of that interface, or with none named of the
// first that is up and no loopback; where there is none, of the loopback.  IPv4 goes first.  Its
// port is 0.
std::error_code FindOwnAddress(const char* interface, Address& own);

}  // namespace sekisho::pm
