// SPDX-License-Identifier: Apache-2.0
// FT: a three-dimensional Fourier transform in slabs, one transpose (all to all) an iteration.
#include <cmath>
#include <complex>

#include "tests/bench/pm/kernels.h"

namespace sekisho::pm_bench {
namespace {

using Complex = std::complex<double>;

void Transform(Complex* data, int n, std::vector<Complex>& roots) {
  if (roots.size() != static_cast<std::size_t>(n)) {
    roots.resize(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i)
      roots[static_cast<std::size_t>(i)] = std::polar(1.0, -2 * M_PI * i / n);
  }
  for (int i = 1, j = 0; i < n; ++i) {
    int bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(data[i], data[j]);
  }
  for (int length = 2; length <= n; length *= 2) {
    for (int start = 0; start < n; start += length) {
      for (int k = 0; k < length / 2; ++k) {
        const Complex root = roots[static_cast<std::size_t>(k * (n / length))];
        Complex& a = data[start + k];
        Complex& b = data[start + k + length / 2];
        const Complex odd(b.real() * root.real() - b.imag() * root.imag(),
                          b.real() * root.imag() + b.imag() * root.real());
        b = a - odd;
        a += odd;
      }
    }
  }
}

}  // namespace

KernelResult FourierTransform(Ranks& ranks, const FtSetup& setup) {
  const auto size = static_cast<std::size_t>(ranks.size()),
             rank = static_cast<std::size_t>(ranks.rank());
  const auto nx = static_cast<std::size_t>(setup.nx), ny = static_cast<std::size_t>(setup.ny),
             nz = static_cast<std::size_t>(setup.nz);
  const std::size_t own_z = nz / size, own_x = nx / size;
  std::vector<Complex> field(own_z * ny * nx), turned(field.size()), out(field.size()),
      in(field.size());
  for (std::size_t i = 0; i < field.size(); ++i) {
    const double at = static_cast<double>(rank * field.size() + i);
    field[i] = {std::fmod(at * 0.754877666, 1.0), std::fmod(at * 0.569840291, 1.0)};
  }
  std::vector<Complex> roots_x, roots_y, roots_z, line(std::max(ny, nz));
  Complex sum = 0;
  for (int iteration = 1; iteration <= setup.iterations; ++iteration) {
    turned = field;
    for (std::size_t z = 0; z < own_z; ++z) {
      Complex* plane = turned.data() + z * ny * nx;
      for (std::size_t y = 0; y < ny; ++y) Transform(plane + y * nx, setup.nx, roots_x);
      for (std::size_t x = 0; x < nx; ++x) {
        for (std::size_t y = 0; y < ny; ++y) line[y] = plane[y * nx + x];
        Transform(line.data(), setup.ny, roots_y);
        for (std::size_t y = 0; y < ny; ++y) plane[y * nx + x] = line[y];
      }
    }
    // To rank r its x of all my z; from rank r my x of its z.
    std::size_t at = 0;
    for (std::size_t r = 0; r < size; ++r) {
      for (std::size_t x = r * own_x; x < (r + 1) * own_x; ++x) {
        for (std::size_t y = 0; y < ny; ++y) {
          for (std::size_t z = 0; z < own_z; ++z) out[at++] = turned[(z * ny + y) * nx + x];
        }
      }
    }
    ranks.Alltoall(In(out).data(), Out(in.data(), in.size()).data(),
                   field.size() / size * sizeof(Complex));
    Complex partial = 0;
    for (std::size_t x = 0; x < own_x; ++x) {
      for (std::size_t y = 0; y < ny; ++y) {
        for (std::size_t r = 0; r < size; ++r) {
          const Complex* from = in.data() + ((r * own_x + x) * ny + y) * own_z;
          std::copy(from, from + own_z, line.begin() + static_cast<std::ptrdiff_t>(r * own_z));
        }
        Transform(line.data(), setup.nz, roots_z);
        const std::size_t global_x = rank * own_x + x;
        if ((global_x + 3 * y) % 5 == static_cast<std::size_t>(iteration) % 5)
          partial += line[(global_x + y) % nz];
      }
    }
    double parts[2] = {partial.real(), partial.imag()};
    ranks.SumAll(parts, 2);
    sum += Complex(parts[0], parts[1]) / static_cast<double>(iteration);
    for (Complex& value : field) value *= 0.999;
  }
  return {std::isfinite(sum.real()), sum.real() + 3 * sum.imag()};
}

}  // namespace sekisho::pm_bench
