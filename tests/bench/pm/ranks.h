// SPDX-License-Identifier: Apache-2.0
// A small MPI: messages with tags between ranks, and the collectives that the paper measures.  The
// same code over every link.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
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
  explicit Ranks(std::unique_ptr<Link> link);
  int rank() const { return link_->rank; }
  int size() const { return link_->size; }

  // The bytes stay the caller's until WaitAll.
  void Send(int to, std::uint32_t tag, Bytes message);
  void Receive(int from, std::uint32_t tag, MutableBytes room);
  void WaitAll();
  void Exchange(int to, Bytes message, int from, MutableBytes room, std::uint32_t tag);

  void Barrier();
  void Broadcast(int root, MutableBytes data);  // binomial tree
  void Allgather(Bytes own, MutableBytes all);  // ring
  void Alltoall(const unsigned char* out, unsigned char* in, std::size_t each);
  void Alltoallv(const unsigned char* out, std::span<const std::size_t> out_sizes,
                 unsigned char* in,
                 std::span<const std::size_t> in_sizes);  // pairwise exchange, all at once
  template <typename T>
  void SumAll(T* values, std::size_t count);  // recursive doubling
  void Finish();
  Link& link() { return *link_; }

 private:
  struct Head {
    std::uint32_t tag = 0;
    std::uint32_t size = 0;
  };
  struct Outgoing {
    Head head;
    Bytes body;
    std::size_t done = 0;
  };
  struct Posted {
    std::uint32_t tag = 0;
    MutableBytes room;
    std::size_t done = 0;
    bool active = false;
  };
  struct Early {  // arrived before it was asked for
    std::uint32_t tag = 0;
    std::vector<unsigned char> bytes;
    bool is_whole = false;
  };
  struct Peer {
    std::deque<Outgoing> out;
    std::list<Posted> posted;
    std::list<Early> early;
    Head head;
    std::size_t head_done = 0, body_done = 0;
    Posted* into = nullptr;
  };

  bool Push();
  void Take(int source, Bytes piece);
  bool Progress();

  std::unique_ptr<Link> link_;
  std::vector<Peer> peers_;
  std::size_t open_ = 0;  // sends and receives that are not done
};

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
