// SPDX-License-Identifier: Apache-2.0
#include "topology/blame.h"

namespace sekisho::topology {
namespace {

struct Count {
  int asked = 0;
  int wrong = 0;

  void Add(bool is_wrong) {
    ++asked;
    wrong += is_wrong ? 1 : 0;
  }
};

// -1: nobody.
int Worst(int hosts, const std::vector<Contradiction>& pairs) {
  std::vector<Count> all(hosts);
  std::vector<Count> near(hosts);
  for (const Contradiction& pair : pairs) {
    for (const int host : {pair.a, pair.b}) {
      all[host].Add(pair.is_wrong);
      if (pair.is_near) {
        near[host].Add(pair.is_wrong);
      }
    }
  }
  int worst = -1;
  for (int host = 0; host < hosts; ++host) {
    const bool is_off_near = near[host].wrong > 0 && 2 * near[host].wrong >= near[host].asked;
    const bool is_off = all[host].wrong > 1 && 2 * all[host].wrong > all[host].asked;
    if ((is_off_near || is_off) && (worst < 0 || all[host].wrong > all[worst].wrong)) {
      worst = host;
    }
  }
  return worst;
}

}  // namespace

std::vector<int> Blame(int hosts, std::vector<Contradiction> pairs) {
  std::vector<int> blamed;
  for (int worst = Worst(hosts, pairs); worst >= 0; worst = Worst(hosts, pairs)) {
    blamed.push_back(worst);
    std::erase_if(
        pairs, [worst](const Contradiction& pair) { return pair.a == worst || pair.b == worst; });
  }
  return blamed;
}

}  // namespace sekisho::topology
