// SPDX-License-Identifier: Apache-2.0
// The three inner loops of QAP tabu search, for the vector width of the machine.  Rows are padded
// to whole vectors of four.
#pragma once

#include <cstddef>

namespace sekisho::rankmap {

// sum over k of (a1[k] - a2[k]) * (b2[k] - b1[k]).
double CrossDot(const double* a1, const double* a2, const double* b1, const double* b2, size_t n);

// d[j] += (x - xs[j]) * (y - ys[j]) for j in [first, n); returns the least d[j] of [first, n).
double UpdateRow(double* d, const double* xs, const double* ys, double x, double y, size_t first,
                 size_t n);
// The same with two terms.
double UpdateRow2(double* d, const double* xs, const double* ys, double x, double y,
                  const double* xs2, const double* ys2, double x2, double y2, size_t first,
                  size_t n);

}  // namespace sekisho::rankmap
