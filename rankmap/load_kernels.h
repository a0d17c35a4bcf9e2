// SPDX-License-Identifier: Apache-2.0
// The inner loops of link loads, for the vector width of the machine; the same bits on all.
#pragma once

#include <cstddef>

namespace sekisho::rankmap {

// rises[i] is (scale * (loads[i] + changes[i]))^power - (scale * loads[i])^power.  `power` is 8, 16 or 32, and n a
// multiple of 4.
void PowerRises(const double* loads, const double* changes, size_t n, double scale, int power, double* rises);

// Their sum.
double PowerRise(const double* loads, const double* changes, size_t n, double scale, int power);

}  // namespace sekisho::rankmap
