// SPDX-License-Identifier: Apache-2.0
#include "rankmap/qap_kernels.h"

#include <cstring>
#include <limits>

#include "rankmap/wide.h"

namespace sekisho::rankmap {

SEKISHO_WIDE double CrossDot(const double* a1, const double* a2, const double* b1, const double* b2,
                             size_t n) {
  Four sum = {0, 0, 0, 0};
  for (size_t k = 0; k < n; k += 4) {
    const Four u = *reinterpret_cast<const Four*>(a1 + k) - *reinterpret_cast<const Four*>(a2 + k);
    const Four v = *reinterpret_cast<const Four*>(b2 + k) - *reinterpret_cast<const Four*>(b1 + k);
    sum += u * v;
  }
  return sum[0] + sum[1] + sum[2] + sum[3];
}

SEKISHO_WIDE double UpdateRow(double* d, const double* xs, const double* ys, double x, double y,
                              size_t first, size_t n) {
  double least = std::numeric_limits<double>::infinity();
  for (; first < n && first % 4 != 0; ++first) {
    d[first] += (x - xs[first]) * (y - ys[first]);
    least = d[first] < least ? d[first] : least;
  }
  Four low = {least, least, least, least};
  const size_t whole = n - n % 4;
  for (; first < whole; first += 4) {
    Four* cell = reinterpret_cast<Four*>(d + first);
    const Four value = *cell + (x - *reinterpret_cast<const Four*>(xs + first)) *
                                   (y - *reinterpret_cast<const Four*>(ys + first));
    *cell = value;
    low = value < low ? value : low;
  }
  for (; first < n; ++first) {
    d[first] += (x - xs[first]) * (y - ys[first]);
    low[0] = d[first] < low[0] ? d[first] : low[0];
  }
  const double a = low[0] < low[1] ? low[0] : low[1];
  const double b = low[2] < low[3] ? low[2] : low[3];
  return a < b ? a : b;
}

SEKISHO_WIDE double UpdateRow2(double* d, const double* xs, const double* ys, double x, double y,
                               const double* xs2, const double* ys2, double x2, double y2,
                               size_t first, size_t n) {
  double least = std::numeric_limits<double>::infinity();
  for (; first < n && first % 4 != 0; ++first) {
    d[first] += (x - xs[first]) * (y - ys[first]) + (x2 - xs2[first]) * (y2 - ys2[first]);
    least = d[first] < least ? d[first] : least;
  }
  Four low = {least, least, least, least};
  const size_t whole = n - n % 4;
  for (; first < whole; first += 4) {
    Four* cell = reinterpret_cast<Four*>(d + first);
    const Four value = *cell +
                       (x - *reinterpret_cast<const Four*>(xs + first)) *
                           (y - *reinterpret_cast<const Four*>(ys + first)) +
                       (x2 - *reinterpret_cast<const Four*>(xs2 + first)) *
                           (y2 - *reinterpret_cast<const Four*>(ys2 + first));
    *cell = value;
    low = value < low ? value : low;
  }
  for (; first < n; ++first) {
    d[first] += (x - xs[first]) * (y - ys[first]) + (x2 - xs2[first]) * (y2 - ys2[first]);
    low[0] = d[first] < low[0] ? d[first] : low[0];
  }
  const double a = low[0] < low[1] ? low[0] : low[1];
  const double b = low[2] < low[3] ? low[2] : low[3];
  return a < b ? a : b;
}

}  // namespace sekisho::rankmap
