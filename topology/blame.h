// SPDX-License-Identifier: Apache-2.0
// Which hosts are not where a tree has them, of pairs that were measured.  Pure.
#pragma once

#include <vector>

namespace sekisho::topology {

struct Contradiction {
  int a = 0;
  int b = 0;
  bool is_near = false;   // both at one switch, says the tree
  bool is_wrong = false;  // and the measurement that it is not so
};

// Who contradicts the tree with half of those at his switch, or with most of all: the worst first,
// for the others' contradictions may all be with him.
std::vector<int> Blame(int hosts, std::vector<Contradiction> pairs);

}  // namespace sekisho::topology
