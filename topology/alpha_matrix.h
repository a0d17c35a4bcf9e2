// SPDX-License-Identifier: Apache-2.0
// The matrix of round-trip times by the alpha rule (Saito and Taura 2007, figure 1): every host
// measures random others and takes over what these know of hosts that are much nearer to them, or
// much farther, than they are to it.  docs/protocol/12-topology.md, "Matrix".  Pure.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "topology/method.h"
#include "topology/neighbour_joining.h"
#include "topology/slots.h"

namespace sekisho::topology {

class AlphaMatrix final : public Method {
 public:
  AlphaMatrix(int hosts, double alpha, uint64_t seed);

  std::vector<Request> Next() override;
  void Report(const Request& request, const Answer& answer) override;
  Outcome Finish() override { return {}; }

  const Matrix& matrix() const { return matrix_; }  // a cell below 0: nobody could tell
  long measured() const { return measured_; }

 private:
  void Learn(int host, int from);
  void Settle(int host, int other, double rtt_us);
  bool StartOne(int host, std::vector<Request>& started);

  double alpha_;
  std::mt19937_64 random_;
  Matrix matrix_;
  std::vector<std::vector<int>> unknown_;   // of each host
  std::vector<std::vector<int>> position_;  // of a host in unknown_, or -1
  std::vector<int> failures_;
  std::vector<bool> is_touched_;
  std::vector<int> touched_;
  Slots slots_;
  long measured_ = 0;
};

}  // namespace sekisho::topology
