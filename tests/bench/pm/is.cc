// SPDX-License-Identifier: Apache-2.0
// IS: integers are sorted by buckets, all to all.
#include <algorithm>

#include "tests/bench/pm/kernels.h"

namespace sekisho::pm_bench {
namespace {

constexpr std::size_t kBuckets = 1024;
constexpr std::size_t kChanged = 1024;  // of the first keys, one in each iteration: any number of
                                        // ranks has so many, and finds the same in the end

std::uint64_t Mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

IntegerSort::IntegerSort(Ranks& ranks, const IsSetup& setup) : ranks_(ranks), setup_(setup) {
  const std::size_t total = std::size_t{1} << setup.keys_log;
  const auto size = static_cast<std::size_t>(ranks.size()),
             rank = static_cast<std::size_t>(ranks.rank());
  for (std::size_t i = total * rank / size; i < total * (rank + 1) / size; ++i) {
    std::uint64_t sum = 0;  // four values: as in NPB, the middle is frequent
    for (std::uint64_t k = 0; k < 4; ++k) sum += Mix(4 * i + k + 1) >> (64 - setup.max_log);
    keys_.push_back(static_cast<std::int32_t>(sum / 4));
  }
}

void IntegerSort::Iterate(int iteration) {
  // As NPB does, so that no iteration is like the one before.
  if (ranks_.rank() == 0) {
    const std::size_t changed = std::min(kChanged, keys_.size());
    keys_[static_cast<std::size_t>(iteration) % changed] = iteration % (1 << setup_.max_log);
  }
  const auto size = static_cast<std::size_t>(ranks_.size());
  const int shift = std::max(0, setup_.max_log - 10);
  std::vector<std::int32_t> own(kBuckets), all(kBuckets);
  for (const std::int32_t key : keys_) ++own[static_cast<std::size_t>(key >> shift)];
  all = own;
  ranks_.SumAll(all.data(), all.size());

  // Neighbouring buckets to one rank, so that all ranks get about the same number.
  std::vector<std::size_t> rank_of(kBuckets);
  std::uint64_t before = 0, total = std::uint64_t{1} << setup_.keys_log;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    rank_of[bucket] = std::min(size - 1, static_cast<std::size_t>(before * size / total));
    before += static_cast<std::uint64_t>(all[bucket]);
  }
  std::vector<std::int32_t> out(keys_.size());
  std::vector<std::int32_t> out_counts(size), in_counts(size);
  std::vector<std::size_t> at(kBuckets), out_bytes(size), in_bytes(size);
  std::size_t next = 0, sum = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    at[bucket] = next;
    next += static_cast<std::size_t>(own[bucket]);
    out_counts[rank_of[bucket]] += own[bucket];
  }
  for (const std::int32_t key : keys_) out[at[static_cast<std::size_t>(key >> shift)]++] = key;
  ranks_.Alltoall(In(out_counts).data(), Out(in_counts.data(), size).data(), sizeof(std::int32_t));
  for (std::size_t i = 0; i < size; ++i) {
    out_bytes[i] = 4 * static_cast<std::size_t>(out_counts[i]);
    in_bytes[i] = 4 * static_cast<std::size_t>(in_counts[i]);
    sum += static_cast<std::size_t>(in_counts[i]);
  }
  sorted_.resize(sum);
  ranks_.Alltoallv(In(out).data(), out_bytes, Out(sorted_.data(), sum).data(), in_bytes);

  std::vector<std::size_t> counts((std::size_t{1} << setup_.max_log) + 1);
  for (const std::int32_t key : sorted_) ++counts[static_cast<std::size_t>(key)];
  std::size_t place = 0;
  for (std::size_t key = 0; key < counts.size(); ++key) {
    std::fill_n(sorted_.begin() + static_cast<std::ptrdiff_t>(place), counts[key],
                static_cast<std::int32_t>(key));
    place += counts[key];
  }
}

// Sorted within and across ranks, none lost, and which keys there are.
KernelResult IntegerSort::Check() {
  KernelResult result;
  const int size = ranks_.size(), rank = ranks_.rank();
  std::vector<std::int32_t> ends(static_cast<std::size_t>(2 * size));
  const std::int32_t own[2] = {sorted_.empty() ? -1 : sorted_.front(),
                               sorted_.empty() ? -1 : sorted_.back()};
  ranks_.Allgather(In(own, 2), Out(ends.data(), ends.size()));
  bool good = std::is_sorted(sorted_.begin(), sorted_.end());
  std::int32_t last = -1;
  for (const std::int32_t end : ends) {
    good = good && (end < 0 || end >= last);
    last = std::max(last, end);
  }
  std::vector<double> sums = {static_cast<double>(sorted_.size()), 0, good ? 0. : 1.};
  std::uint64_t before = 0;
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(size));
  const std::uint64_t count = sorted_.size();
  ranks_.Allgather(In(&count, 1), Out(counts.data(), counts.size()));
  for (int i = 0; i < rank; ++i) before += counts[static_cast<std::size_t>(i)];
  for (const std::int32_t key : sorted_)
    sums[1] += static_cast<double>(key) * static_cast<double>(before++ % 1009);
  ranks_.SumAll(sums.data(), sums.size());
  result.correct =
      sums[2] == 0 && sums[0] == static_cast<double>(std::uint64_t{1} << setup_.keys_log);
  result.value = sums[1];
  return result;
}

}  // namespace sekisho::pm_bench
