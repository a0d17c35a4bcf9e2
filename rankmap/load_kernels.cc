// SPDX-License-Identifier: Apache-2.0
#include "rankmap/load_kernels.h"

#include "rankmap/wide.h"

namespace sekisho::rankmap {
namespace {

template <int kSquarings>
[[gnu::always_inline]] inline void Rise(const double* loads, const double* changes, double scale, Four& rise) {
  const Four load = *reinterpret_cast<const Four*>(loads);
  Four before = load * scale;
  Four after = (load + *reinterpret_cast<const Four*>(changes)) * scale;
  for (int k = 0; k < kSquarings; ++k) {
    before *= before;
    after *= after;
  }
  rise = after - before;
}

template <int kSquarings>
[[gnu::always_inline]] inline void Rises(const double* loads, const double* changes, size_t n, double scale,
                                         double* rises) {
  for (size_t i = 0; i < n; i += 4) {
    Rise<kSquarings>(loads + i, changes + i, scale, *reinterpret_cast<Four*>(rises + i));
  }
}

template <int kSquarings>
[[gnu::always_inline]] inline double Sum(const double* loads, const double* changes, size_t n, double scale) {
  Four sum = {0, 0, 0, 0};
  for (size_t i = 0; i < n; i += 4) {
    Four rise;
    Rise<kSquarings>(loads + i, changes + i, scale, rise);
    sum += rise;
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

}  // namespace

SEKISHO_WIDE void PowerRises(const double* loads, const double* changes, size_t n, double scale, int power,
                             double* rises) {
  switch (power) {
    case 8:
      return Rises<3>(loads, changes, n, scale, rises);
    case 16:
      return Rises<4>(loads, changes, n, scale, rises);
    default:
      return Rises<5>(loads, changes, n, scale, rises);
  }
}

SEKISHO_WIDE double PowerRise(const double* loads, const double* changes, size_t n, double scale, int power) {
  switch (power) {
    case 8:
      return Sum<3>(loads, changes, n, scale);
    case 16:
      return Sum<4>(loads, changes, n, scale);
    default:
      return Sum<5>(loads, changes, n, scale);
  }
}

}  // namespace sekisho::rankmap
