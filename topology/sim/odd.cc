// SPDX-License-Identifier: Apache-2.0
#include "topology/sim/odd.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "topology/sim/truth_builder.h"

namespace sekisho::topology::sim {
namespace {

// Few more often than many: 3 to 7 as likely as 48 to 112.
int Size(TruthBuilder& builder, double least, double most) {
  return static_cast<int>(std::exp(builder.Uniform(std::log(least), std::log(most + 0.999))));
}

// Hosts anywhere on a random tree of switches; its leaves have two at least, or nothing shows them.
int RandomSite(TruthBuilder& builder, int hosts, int cluster, double low_us, double high_us) {
  const int root = builder.Switch();
  std::vector<int> switches{root};
  std::vector<int> children{0};
  const int wanted = std::max(1, hosts / Size(builder, 3, 20));
  while (static_cast<int>(switches.size()) < wanted) {
    const int parent = builder.Integer(0, static_cast<int>(switches.size()) - 1);
    switches.push_back(builder.Switch());
    children.push_back(0);
    ++children[parent];
    builder.Join(switches[parent], switches.back(), low_us, high_us);
  }
  int left = hosts;
  for (size_t i = 0; i < switches.size(); ++i) {
    const int mine = std::min(left, children[i] == 0 ? 2 : 0);
    builder.AddHosts(switches[i], mine, cluster);
    left -= mine;
  }
  for (; left > 0; --left) {
    builder.AddHosts(switches[builder.Integer(0, static_cast<int>(switches.size()) - 1)], 1,
                     cluster);
  }
  return root;
}

// Sites of the given sizes on a random tree of routers.
void RandomSites(TruthBuilder& builder, const std::vector<int>& sizes, double low_us,
                 double high_us) {
  std::vector<int> routers{builder.Switch()};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int site = RandomSite(builder, sizes[i], static_cast<int>(i), 2.25, 3.1);
    if (builder.Integer(0, 2) == 0) {
      const int from = routers[builder.Integer(0, static_cast<int>(routers.size()) - 1)];
      routers.push_back(builder.Switch());
      builder.Join(from, routers.back(), low_us / 4, high_us / 4, 100);
    }
    builder.JoinFar(site, routers[builder.Integer(0, static_cast<int>(routers.size()) - 1)],
                    builder.Uniform(low_us, high_us));
  }
}

std::vector<int> Sizes(TruthBuilder& builder, int count, double least, double most) {
  std::vector<int> sizes;
  for (int i = 0; i < count; ++i) {
    sizes.push_back(Size(builder, least, most));
  }
  return sizes;
}

// One switch after the other, now and then with a single host.
void Chain(TruthBuilder& builder) {
  int last = builder.Switch();
  builder.AddHosts(last, 2, 0);
  for (int left = builder.Integer(2, 30); left > 0; --left) {
    const int next = builder.Switch();
    builder.JoinSwitches(last, next);
    builder.AddHosts(next, left == 1 ? 2 : Size(builder, 1, 6), 0);
    last = next;
  }
}

constexpr int kHuge = 4096;

// So many hosts in all, sites from a few to half of them.
std::vector<int> HugeSizes(TruthBuilder& builder) {
  std::vector<int> sizes;
  for (int left = kHuge; left > 0; left -= sizes.back()) {
    sizes.push_back(std::min(left, Size(builder, 20, kHuge / 2)));
  }
  return sizes;
}

struct Kind {
  std::string_view name;
  std::function<void(TruthBuilder&)> build;
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {
      {"odd-star",
       [](TruthBuilder& b) { b.AddHosts(b.Switch(), Size(b, 3, 300), 0, 5, b.Uniform(6, 60)); }},
      {"odd-same", [](TruthBuilder& b) { b.AddHosts(b.Switch(), Size(b, 3, 100), 0, 20, 20); }},
      {"odd-chain", [](TruthBuilder& b) { Chain(b); }},
      {"odd-site", [](TruthBuilder& b) { RandomSite(b, Size(b, 4, 256), 0, 2.25, 3.1); }},
      {"odd-large", [](TruthBuilder& b) { RandomSite(b, b.Integer(257, 700), 0, 2.25, 3.1); }},
      {"odd-rough", [](TruthBuilder& b) { RandomSite(b, Size(b, 8, 200), 0, 2.25, 60); }},
      {"odd-uneven",
       [](TruthBuilder& b) { RandomSites(b, Sizes(b, b.Integer(2, 10), 1, 120), 100, 4000); }},
      {"odd-many",
       [](TruthBuilder& b) { RandomSites(b, Sizes(b, b.Integer(12, 40), 2, 8), 150, 5000); }},
      {"odd-singles",
       [](TruthBuilder& b) { RandomSites(b, Sizes(b, b.Integer(4, 30), 1, 1), 150, 5000); }},
      {"odd-campus",
       [](TruthBuilder& b) { RandomSites(b, Sizes(b, b.Integer(2, 5), 8, 60), 20, 110); }},
      {"odd-star4096", [](TruthBuilder& b) { b.AddHosts(b.Switch(), kHuge, 0); }},
      {"odd-site4096", [](TruthBuilder& b) { RandomSite(b, kHuge, 0, 2.25, 3.1); }},
      {"odd-sites4096", [](TruthBuilder& b) { RandomSites(b, HugeSizes(b), 150, 5000); }},
      {"odd-twins",  // names of one machine: nothing between them but its own stack
       [](TruthBuilder& b) {
         const int root = b.Switch();
         for (int i = b.Integer(2, 30); i > 0; --i) {
           const int machine = b.Switch();
           b.Join(root, machine, 18, 30);
           b.AddHosts(machine, b.Integer(1, 3), 0, 1, 2);
         }
       }},
  };
  return kinds;
}

}  // namespace

std::vector<std::string_view> OddNames() {
  std::vector<std::string_view> names;
  for (const Kind& kind : Kinds()) {
    if (!kind.name.ends_with("4096")) {  // these take minutes each
      names.push_back(kind.name);
    }
  }
  for (const std::string_view name : {"odd-asym", "odd-busy"}) {
    names.push_back(name);
  }
  return names;
}

std::optional<Truth> MakeOdd(std::string_view name, uint64_t seed) {
  const std::string_view shape = name == "odd-asym" || name == "odd-busy" ? "odd-uneven" : name;
  const auto kind = std::find_if(Kinds().begin(), Kinds().end(),
                                 [&](const Kind& one) { return one.name == shape; });
  if (kind == Kinds().end()) {
    return std::nullopt;
  }
  TruthBuilder builder(seed);
  kind->build(builder);
  const int noise = builder.Integer(0, 3);
  Truth truth = builder.Finish(name, seed,
                               noise == 0   ? ExactNoise()
                               : noise == 1 ? LabNoise()
                                            : QuietNoise());
  if (name == "odd-asym") {
    builder.MakeAsymmetric(truth, 0.8);
  }
  if (name == "odd-busy") {
    truth.noise = QuietNoise();
    builder.MakeBusy(truth);
  }
  return truth;
}

}  // namespace sekisho::topology::sim
