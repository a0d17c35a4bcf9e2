// SPDX-License-Identifier: Apache-2.0
#include "rankmap/network_format.h"

#include <algorithm>
#include <optional>

#include "rankmap/errors.h"
#include "rankmap/text.h"

namespace sekisho::rankmap {
namespace {

using Words = std::vector<std::string_view>;

Words Split(std::string_view text, char separator) {
  Words parts;
  for (size_t first = 0; first <= text.size();) {
    const size_t end = std::min(text.find(separator, first), text.size());
    parts.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  return parts;
}

struct Cluster {
  std::string name;
  int first = 0;
  int nodes = 0;
  int64_t inside = 0;
};

class NetworkParser {
 public:
  NetworkParser(std::string_view text, std::string_view file) : reader_(text, file) {}

  absl::StatusOr<Network> Parse() {
    Words words;
    while (reader_.Next(words)) {
      RETURN_IF_ERROR(Statement(words));
    }
    if (reader_.is_cut()) {
      return reader_.CutOff();
    }
    auto network = Build();
    if (network.ok()) {
      if (const absl::Status status = network->set_capacity(capacity_); !status.ok()) {
        return reader_.Error(std::string(status.message()));
      }
      network->bandwidth = bandwidth_;
      network->latency = latency_;
    }
    return network;
  }

 private:
  absl::Status Statement(const Words& words) {
    const std::string_view verb = words[0];
    if (verb == "torus" || verb == "mesh" || verb == "tree" || verb == "matrix") {
      if (!kind_.empty() || !clusters_.empty()) {
        return reader_.Error("a second network in one file");
      }
      kind_ = verb;
    }
    if (verb == "torus" || verb == "mesh") {
      return Dimensions(words);
    }
    if (verb == "tree") {
      return Levels(words);
    }
    if (verb == "matrix") {
      return Matrix(words);
    }
    if (verb == "cluster") {
      return AddCluster(words);
    }
    if (verb == "between") {
      return Between(words);
    }
    return Setting(words);
  }

  absl::Status Setting(const Words& words) {
    if (words.size() != 2) {
      return reader_.Error(fmt::format("unknown line '{}'", Shown(words[0])));
    }
    if (words[0] == "capacity") {
      ASSIGN_OR_RETURN(capacity_, reader_.Integer(words[1], 1, 4096, "capacity"));
    } else if (words[0] == "bandwidth") {
      ASSIGN_OR_RETURN(bandwidth_, reader_.Positive(words[1], "bandwidth"));
    } else if (words[0] == "latency") {
      ASSIGN_OR_RETURN(latency_, reader_.Positive(words[1], "latency"));
    } else if (words[0] == "tie") {
      static constexpr std::string_view kNames[] = {"plus", "minus", "parity"};
      const auto* found = std::find(std::begin(kNames), std::end(kNames), words[1]);
      if (found == std::end(kNames)) {
        return reader_.Error("tie: expected plus, minus or parity");
      }
      shape_.tie = static_cast<Tie>(found - std::begin(kNames));
    } else if (words[0] == "order") {
      return Order(words[1]);
    } else {
      return reader_.Error(fmt::format("unknown word '{}'", Shown(words[0])));
    }
    return absl::OkStatus();
  }

  // "zyx" or "2,1,0".
  absl::Status Order(std::string_view word) {
    shape_.order.clear();
    const bool letters = word.find_first_not_of("xyzw") == std::string_view::npos;
    for (const std::string_view part : letters ? Words{} : Split(word, ',')) {
      ASSIGN_OR_RETURN(const int64_t d, reader_.Integer(part, 0, 7, "dimension"));
      shape_.order.push_back(static_cast<int>(d));
    }
    for (const char c : letters ? word : std::string_view()) {
      shape_.order.push_back(c == 'w' ? 3 : c - 'x');
    }
    return absl::OkStatus();
  }

  absl::Status Dimensions(const Words& words) {
    if (words.size() != 2) {
      return reader_.Error(fmt::format("expected '{} 16x16x16'", words[0]));
    }
    for (const std::string_view part : Split(words[1], 'x')) {
      ASSIGN_OR_RETURN(const int64_t size, reader_.Integer(part, 1, 32767, "size"));
      shape_.dims.push_back(static_cast<int>(size));
      shape_.wrap.push_back(words[0] == "torus");
    }
    return absl::OkStatus();
  }

  // tree ARITY[:DISTANCE[:WIDTH]] ..., from the root down.
  absl::Status Levels(const Words& words) {
    for (size_t i = 1; i < words.size(); ++i) {
      const Words parts = Split(words[i], ':');
      if (parts.size() > 3) {
        return reader_.Error("tree level: expected ARITY[:DISTANCE[:WIDTH]]");
      }
      TreeLevel level;
      ASSIGN_OR_RETURN(level.arity, reader_.Integer(parts[0], 1, Network::kMaxNodes, "arity"));
      if (parts.size() > 1) {
        ASSIGN_OR_RETURN(level.distance,
                         reader_.Integer(parts[1], 0, int64_t{1} << 40, "distance"));
      }
      if (parts.size() > 2) {
        ASSIGN_OR_RETURN(level.width, reader_.Integer(parts[2], 1, 4096, "width"));
      }
      levels_.push_back(level);
    }
    return absl::OkStatus();
  }

  absl::Status Matrix(const Words& words) {
    if (words.size() != 2) {
      return reader_.Error("expected 'matrix N', then N lines of N distances");
    }
    ASSIGN_OR_RETURN(matrix_nodes_,
                     reader_.Integer(words[1], 1, Network::kMaxMatrixNodes, "nodes"));
    Words row;
    for (int64_t i = 0; i < matrix_nodes_; ++i) {
      if (!reader_.Next(row) || static_cast<int64_t>(row.size()) != matrix_nodes_) {
        return reader_.Error(fmt::format("row {} of the matrix: expected {} distances, found {}", i,
                                         matrix_nodes_, row.size()));
      }
      for (const std::string_view word : row) {
        if (word == "-" || word == "inf") {
          return reader_.Error("the network is disconnected: a distance is missing");
        }
        ASSIGN_OR_RETURN(const int64_t distance,
                         reader_.Integer(word, 0, int64_t{1} << 40, "distance"));
        distances_.push_back(distance);
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddCluster(const Words& words) {
    if (words.size() != 4 || !kind_.empty()) {
      return reader_.Error("expected 'cluster NAME NODES DISTANCE', in a file of clusters only");
    }
    Cluster cluster;
    cluster.name = words[1];
    ASSIGN_OR_RETURN(cluster.nodes,
                     reader_.Integer(words[2], 1, Network::kMaxMatrixNodes, "nodes"));
    ASSIGN_OR_RETURN(cluster.inside, reader_.Integer(words[3], 0, int64_t{1} << 40, "distance"));
    cluster.first = clusters_.empty() ? 0 : clusters_.back().first + clusters_.back().nodes;
    if (cluster.first + cluster.nodes > Network::kMaxMatrixNodes || Find(words[1]) >= 0) {
      return reader_.Error(
          fmt::format("cluster '{}': a second one of that name, or more than {} nodes",
                      Shown(words[1]), Network::kMaxMatrixNodes));
    }
    clusters_.push_back(std::move(cluster));
    return absl::OkStatus();
  }

  absl::Status Between(const Words& words) {
    if (words.size() != 4) {
      return reader_.Error("expected 'between A B DISTANCE'");
    }
    const int a = Find(words[1]);
    const int b = Find(words[2]);
    if (a < 0 || b < 0 || a == b) {
      return reader_.Error("between: expected two clusters named above");
    }
    ASSIGN_OR_RETURN(const int64_t distance,
                     reader_.Integer(words[3], 0, int64_t{1} << 40, "distance"));
    between_.push_back({a, b, distance});
    return absl::OkStatus();
  }

  int Find(std::string_view name) const {
    for (size_t i = 0; i < clusters_.size(); ++i) {
      if (clusters_[i].name == name) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  absl::StatusOr<Network> Clusters() const {
    const size_t count = clusters_.size();
    std::vector<int64_t> pairs(count * count, -1);
    for (const auto& [a, b, distance] : between_) {
      pairs[a * count + b] = pairs[b * count + a] = distance;
    }
    const int nodes = clusters_.back().first + clusters_.back().nodes;
    std::vector<int64_t> distances(static_cast<size_t>(nodes) * nodes);
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < count; ++j) {
        const int64_t distance = i == j ? clusters_[i].inside : pairs[i * count + j];
        if (distance < 0) {
          return reader_.Error(fmt::format("the network is disconnected: no 'between {} {}'",
                                           clusters_[i].name, clusters_[j].name));
        }
        for (int a = clusters_[i].first; a < clusters_[i].first + clusters_[i].nodes; ++a) {
          for (int b = clusters_[j].first; b < clusters_[j].first + clusters_[j].nodes; ++b) {
            distances[static_cast<size_t>(a) * nodes + b] = a == b ? 0 : distance;
          }
        }
      }
    }
    return Network::MakeMatrix(nodes, std::move(distances));
  }

  absl::StatusOr<Network> Build() {
    absl::StatusOr<Network> network = absl::UnknownError("");
    if (!clusters_.empty()) {
      return Clusters();
    }
    if (kind_ == "torus" || kind_ == "mesh") {
      network = Network::MakeGrid(std::move(shape_));
    } else if (kind_ == "tree") {
      network = Network::MakeTree(std::move(levels_));
    } else if (kind_ == "matrix") {
      network = Network::MakeMatrix(static_cast<int>(matrix_nodes_), std::move(distances_));
    } else {
      return reader_.Error("no network: expected torus, mesh, tree, matrix or cluster lines");
    }
    if (!network.ok()) {
      return reader_.Error(std::string(network.status().message()));
    }
    return network;
  }

  struct Link {
    int a, b;
    int64_t distance;
  };

  LineReader reader_;
  std::string kind_;
  GridShape shape_;
  std::vector<TreeLevel> levels_;
  int64_t matrix_nodes_ = 0;
  std::vector<int64_t> distances_;
  std::vector<Cluster> clusters_;
  std::vector<Link> between_;
  int64_t capacity_ = 1;
  double bandwidth_ = 5e9;
  double latency_ = 120e-9;
};

}  // namespace

absl::StatusOr<Network> ParseNetwork(std::string_view text, std::string_view file) {
  return NetworkParser(text, file).Parse();
}

bool IsNetworkSpec(std::string_view word) {
  return word.starts_with("torus:") || word.starts_with("mesh:") || word.starts_with("tree:") ||
         word.starts_with("torus ") || word.starts_with("mesh ") || word.starts_with("tree ");
}

absl::StatusOr<Network> ParseNetworkSpec(std::string_view word) {
  std::string text(word);
  text[text.find_first_of(": ")] = ' ';
  if (text.starts_with("tree")) {
    std::replace(text.begin(), text.end(), ',', ' ');
  } else {
    std::replace(text.begin(), text.end(), ',', '\n');  // torus:4x4,tie=minus
    std::replace(text.begin(), text.end(), '=', ' ');
  }
  return ParseNetwork(text + "\n", "network");
}

}  // namespace sekisho::rankmap
