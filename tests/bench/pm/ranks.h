// SPDX-License-Identifier: Apache-2.0
// A small MPI: messages with tags between ranks, and the collectives that the paper measures.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/bench/pm/link.h"

namespace sekisho::pm_bench {

using MutableBytes = std::span<unsigned char>;

template <typename T>
Bytes In(const std::vector<T>& values) {
  return {reinterpret_cast<const unsigned char*>(values.data()), values.size() * sizeof(T)};
}
template <typename T>
Bytes In(const T* values, std::size_t count) {
  return {reinterpret_cast<const unsigned char*>(values), count * sizeof(T)};
}
template <typename T>
MutableBytes Out(T* values, std::size_t count) {
  return {reinterpret_cast<unsigned char*>(values), count * sizeof(T)};
}

class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // The bytes stay the caller's until WaitAll.
  virtual void Send(int to, std::uint32_t tag, Bytes message) = 0;
  virtual void Receive(int from, std::uint32_t tag, MutableBytes room) = 0;
  virtual void WaitAll() = 0;

  virtual void Barrier() = 0;
  virtual void Broadcast(int root, MutableBytes data) = 0;
  virtual void Allgather(Bytes own, MutableBytes all) = 0;
  virtual void Alltoallv(const unsigned char* out, std::span<const std::size_t> out_sizes,
                         unsigned char* in, std::span<const std::size_t> in_sizes) = 0;
  virtual void Finish() = 0;
  virtual Link& link() = 0;

  void Exchange(int to, Bytes message, int from, MutableBytes room, std::uint32_t tag) {
    Receive(from, tag, room);
    Send(to, tag, message);
    WaitAll();
  }
  virtual void Alltoall(const unsigned char* out, unsigned char* in, std::size_t each) {
    const std::vector<std::size_t> sizes(static_cast<std::size_t>(size()), each);
    Alltoallv(out, sizes, in, sizes);
  }
  template <typename T>
  void SumAll(T* values, std::size_t count);  // recursive doubling
};

// Over "pm" or "tcp"; or, in the program that is linked with it, "mpich".
std::unique_ptr<Ranks> OpenRanks(const std::string& link, const LinkSettings& settings);

template <typename T>
void Ranks::SumAll(T* values, std::size_t count) {
  std::vector<T> other(count);
  for (int step = 1; step < size(); step *= 2) {
    const int partner = rank() ^ step;
    Exchange(partner, In(values, count), partner, Out(other.data(), count), 7);
    for (std::size_t i = 0; i < count; ++i) values[i] += other[i];
  }
}

}  // namespace sekisho::pm_bench
