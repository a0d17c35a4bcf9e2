// SPDX-License-Identifier: Apache-2.0
#include "allocator/policy.h"

#include <tuple>

#include "allocator/errors.h"

namespace sekisho::allocator {
namespace {

bool PaperIsBetter(const Candidate& a, const Candidate& b) {
  return std::tuple(a.running_jobs, -a.clock_mhz) < std::tuple(b.running_jobs, -b.clock_mhz);
}

bool LoadIsBetter(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& c) {
    return std::tuple(!c.fits_now, c.load_per_processor, c.running_jobs, -c.clock_mhz);
  };
  return key(a) < key(b);
}

bool NearIsBetter(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& c) {
    return std::tuple(!c.fits_now, c.running_jobs, -c.clock_mhz);
  };
  return key(a) < key(b);
}

constexpr Policy kPolicies[] = {
    {"paper", PaperIsBetter, false},
    {"load", LoadIsBetter, true},
    {"near", NearIsBetter, false, true},
};

}  // namespace

absl::StatusOr<Policy> FindPolicy(std::string_view name) {
  for (const Policy& policy : kPolicies) {
    if (policy.name == name) {
      return policy;
    }
  }
  return errors::UnknownPolicy(name);
}

}  // namespace sekisho::allocator
