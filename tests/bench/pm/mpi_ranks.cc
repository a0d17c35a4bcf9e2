// SPDX-License-Identifier: Apache-2.0
// A real MPI in place of the small one, for comparison.
#include <mpi.h>

#include "tests/bench/pm/ranks.h"

namespace sekisho::pm_bench {
namespace {

std::vector<int> Counts(std::span<const std::size_t> sizes, std::vector<int>& begins) {
  std::vector<int> counts;
  int at = 0;
  for (const std::size_t size : sizes) {
    counts.push_back(static_cast<int>(size));
    begins.push_back(at);
    at += counts.back();
  }
  return counts;
}

// MPI_Init's errors end the program, as all others of MPI do unless it says otherwise.
class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Link& link() override { Die("MPI has no checkpoints"); }

  void Send(int to, std::uint32_t tag, Bytes message) override {
    MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, to, static_cast<int>(tag),
              MPI_COMM_WORLD, &requests_.emplace_back());
  }
  void Receive(int from, std::uint32_t tag, MutableBytes room) override {
    MPI_Irecv(room.data(), static_cast<int>(room.size()), MPI_BYTE, from, static_cast<int>(tag),
              MPI_COMM_WORLD, &requests_.emplace_back());
  }
  void WaitAll() override {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    requests_.clear();
  }
  void Barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void Broadcast(int root, MutableBytes data) override {
    MPI_Bcast(data.data(), static_cast<int>(data.size()), MPI_BYTE, root, MPI_COMM_WORLD);
  }
  void Allgather(Bytes own, MutableBytes all) override {
    const int each = static_cast<int>(own.size());
    MPI_Allgather(own.data(), each, MPI_BYTE, all.data(), each, MPI_BYTE, MPI_COMM_WORLD);
  }
  void Alltoall(const unsigned char* out, unsigned char* in, std::size_t each) override {
    MPI_Alltoall(out, static_cast<int>(each), MPI_BYTE, in, static_cast<int>(each), MPI_BYTE,
                 MPI_COMM_WORLD);
  }
  void Alltoallv(const unsigned char* out, std::span<const std::size_t> out_sizes,
                 unsigned char* in, std::span<const std::size_t> in_sizes) override {
    std::vector<int> to, from;
    const std::vector<int> sent = Counts(out_sizes, to), received = Counts(in_sizes, from);
    MPI_Alltoallv(out, sent.data(), to.data(), MPI_BYTE, in, received.data(), from.data(), MPI_BYTE,
                  MPI_COMM_WORLD);
  }
  void Finish() override { MPI_Finalize(); }

 private:
  int rank_ = 0, size_ = 0;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Ranks> OpenRanks(const std::string& link, const LinkSettings& /*settings*/) {
  if (link != "mpich") Die("this program is for --link mpich");
  return std::make_unique<MpiRanks>();
}

}  // namespace sekisho::pm_bench
