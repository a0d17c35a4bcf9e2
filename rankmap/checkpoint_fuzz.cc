// SPDX-License-Identifier: Apache-2.0
// Checkpoints of both solvers, with a right checksum so that the fuzzer gets past it.
#include <cstddef>
#include <cstdint>
#include <string>

#include "rankmap/archive.h"
#include "rankmap/generate.h"
#include "rankmap/network_format.h"
#include "rankmap/portfolio.h"
#include "rankmap/qap_solver.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sekisho::rankmap;
  static const Network network = *ParseNetworkSpec("torus:2x2x2");
  static const Pattern pattern = *Generate("bruck", {.ranks = 8, .bytes = 1});
  static const Problem problem(pattern, network, {});
  static const QapInstance instance = *ParseQap("3 0 1 2 3 0 4 5 6 0 0 1 2 3 0 4 5 6 0", "f");
  // The start of a real one, so that keys fit; then what the fuzzer says.
  static const std::string real = Solver(problem, 0, nullptr).Save();
  static const std::string real_qap = QapSolver(instance, QapMethod::kAuto, 1).Save();
  const auto forged = [&](const std::string& from) {
    std::string bytes = from.substr(0, from.size() - 8);
    for (size_t i = 0; i + 1 < size; i += 2) {
      bytes[8 + data[i] * 256u % (bytes.size() - 8)] = static_cast<char>(data[i + 1]);
    }
    const uint64_t sum = Checksum(bytes);
    return bytes.append(reinterpret_cast<const char*>(&sum), 8);
  };
  Solver solver(problem, 0, nullptr);
  if (solver.Restore(forged(real)).ok()) {
    solver.Step(0.5, [] { return true; });  // no construction: they are not what is tested
  }
  (void)QapSolver(instance, QapMethod::kAuto, 1).Restore(forged(real_qap));
  return 0;
}
