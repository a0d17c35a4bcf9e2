// SPDX-License-Identifier: Apache-2.0
// Folding: every dimension of the network is one digit or a low and a high one; each digit serves
// one dimension of the lattice; counting back and forth (reflected digits) keeps neighbours
// together.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "rankmap/evaluate.h"
#include "rankmap/lattice.h"

namespace sekisho::rankmap {
namespace {

constexpr size_t kKeep = 8;
constexpr size_t kMostDims = 4;  // of the network
constexpr int kOddSplits = 20;  // larger dimensions split by divisors only

struct Digit {
  int physical = 0;
  int radix = 1;
  int stride = 1;  // of one step of this digit, in hops
  int logical = -1;
};

struct Fold {
  double cost = 0;
  std::vector<Digit> digits;
};

// Where its digits put a coordinate of the `logical`-th dimension: added to `position`, by physical dimension.
void AddPosition(const Fold& fold, int logical, int coordinate, std::span<int> position) {
  for (const Digit& d : fold.digits) {
    if (d.logical == logical) {
      const int value = coordinate % d.radix;
      coordinate /= d.radix;
      position[d.physical] += (coordinate % 2 == 1 ? d.radix - 1 - value : value) * d.stride;
    }
  }
}

class Folder {
 public:
  Folder(const Lattice& lattice, const Network& network, const Stop& stop)
      : lattice_(lattice), dims_(network.grid().dims), wrap_(network.grid().wrap), stop_(stop), reach_(lattice.dims.size(), 1) {
    for (size_t l = 0; l < lattice.dims.size(); ++l) {
      least_ +=
          lattice.weights[l] * (lattice.dims[l] - (lattice.wrap[l] ? 0 : 1)) / lattice.dims[l];
    }
    least_ *= 1 + 1e-9;
  }

  std::vector<Fold> Run() {
    Split(0);
    return std::move(kept_);
  }

 private:
  void Split(size_t physical) {
    if (stop_() || (!kept_.empty() && kept_[0].cost <= least_)) {
      return;
    }
    if (physical == dims_.size()) {
      return Assign(0);
    }
    const int size = dims_[physical];
    const int p = static_cast<int>(physical);
    digits_.push_back({p, size, 1});
    Split(physical + 1);
    digits_.pop_back();
    for (int low = 2; low <= size / 2; ++low) {
      if (size > kOddSplits && size % low != 0) {
        continue;
      }
      digits_.push_back({p, low, 1});
      digits_.push_back({p, size / low, low});
      Split(physical + 1);
      digits_.pop_back();
      digits_.pop_back();
    }
  }

  void Assign(size_t digit) {
    if (digit == digits_.size()) {
      return Judge();
    }
    if (Missing() > Left(digit)) {
      return;
    }
    const int logical = static_cast<int>(lattice_.dims.size());
    for (int l = digits_[digit].radix == 1 ? -1 : 0; l < logical; ++l) {
      digits_[digit].logical = l;
      if (l >= 0) {
        reach_[l] *= digits_[digit].radix;
      }
      Assign(digit + 1);
      if (l >= 0) {
        reach_[l] /= digits_[digit].radix;
      }
      if (digits_[digit].radix == 1) {
        break;
      }
    }
  }

  // How many places the digits from here on have, and how many the dimensions that are too short still want: without this a
  // lattice of many dimensions has more ways to go wrong than there is time for.
  int64_t Left(size_t digit) const {
    int64_t left = 1;
    for (; digit < digits_.size(); ++digit) {
      left *= digits_[digit].radix;
    }
    return left;
  }
  int64_t Missing() const {
    int64_t missing = 1;
    for (size_t l = 0; l < lattice_.dims.size(); ++l) {
      missing *= (lattice_.dims[l] + reach_[l] - 1) / reach_[l];
    }
    return missing;
  }

  // Small strides count fastest: few carries go far.
  void Judge() {
    Fold fold{0, digits_};
    std::stable_sort(fold.digits.begin(), fold.digits.end(), [](const Digit& a, const Digit& b) {
      return a.stride != b.stride ? a.stride < b.stride : a.radix > b.radix;
    });
    for (size_t l = 0; l < lattice_.dims.size(); ++l) {
      int64_t reach = 1;
      double hops = 0;
      const int size = lattice_.dims[l];
      for (const Digit& d : fold.digits) {
        if (d.logical != static_cast<int>(l) || reach >= size) {
          continue;
        }
        const int64_t next = reach * d.radix;
        const auto steps = [&](int64_t block) { return static_cast<double>((size - 1) / block); };
        hops += (steps(reach) - steps(next)) * d.stride;
        reach = next;
      }
      if (reach < size) {
        return;
      }
      if (lattice_.wrap[l]) {
        hops += Closing(fold, static_cast<int>(l));
      }
      fold.cost += lattice_.weights[l] * hops / size;
    }
    const auto at = std::upper_bound(kept_.begin(), kept_.end(), fold.cost,
                                     [](double cost, const Fold& f) { return cost < f.cost; });
    if (at - kept_.begin() < static_cast<std::ptrdiff_t>(kKeep)) {
      kept_.insert(at, std::move(fold));
      kept_.resize(std::min(kept_.size(), kKeep));
    }
  }

  // Hops from a dimension's last coordinate to its first one.
  int Closing(const Fold& fold, int logical) const {
    std::array<int, kMostDims> last{};
    AddPosition(fold, logical, lattice_.dims[logical] - 1, last);
    int hops = 0;
    for (size_t p = 0; p < dims_.size(); ++p) {  // the first one is at 0
      hops += wrap_[p] ? std::min(last[p], dims_[p] - last[p]) : last[p];
    }
    return hops;
  }

  const Lattice& lattice_;
  const std::vector<int>& dims_;
  const std::vector<bool>& wrap_;
  const Stop& stop_;
  double least_ = 0;  // every neighbour one hop away
  std::vector<Digit> digits_;
  std::vector<int64_t> reach_;  // by dimension of the lattice: of the digits that serve it so far
  std::vector<Fold> kept_;
};

Placement Place(const Fold& fold, const Lattice& lattice, int ranks, const Network& network) {
  const std::vector<int>& dims = network.grid().dims;
  std::vector<int> nodes(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<int> position(dims.size());
    for (size_t l = 0; l < lattice.dims.size(); ++l) {
      AddPosition(fold, static_cast<int>(l), lattice.at[rank][l], position);
    }
    int node = 0;
    for (size_t p = dims.size(); p-- > 0;) {
      node = node * dims[p] + position[p];
    }
    nodes[rank] = node;
  }
  auto placement = FromNodes(network, ranks, nodes);
  CHECK(placement.ok());
  return *std::move(placement);
}

}  // namespace

std::vector<Placement> FoldLattice(const Lattice& lattice, int ranks, const Network& network,
                                   const Stop& stop) {
  if (network.kind() != Network::Kind::kGrid || network.grid().dims.size() > kMostDims) {
    return {};
  }
  std::vector<Placement> placements;
  for (const Fold& fold : Folder(lattice, network, stop).Run()) {
    placements.push_back(Place(fold, lattice, ranks, network));
  }
  return placements;
}

}  // namespace sekisho::rankmap
