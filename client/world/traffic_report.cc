// SPDX-License-Identifier: Apache-2.0
#include "client/world/traffic_report.h"

#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>

namespace sekisho::client {
namespace {

constexpr std::string_view kMark = "sekisho-traffic ";
constexpr size_t kLineMost = 4096;
constexpr size_t kOtherMost = 4096;
constexpr int64_t kNumberMost = int64_t{1} << 53;

}  // namespace

void TrafficReport::Add(int rank, std::string_view data) {
  if (rank < 0 || rank >= ranks()) {
    return;
  }
  std::string& line = ranks_[size_t(rank)].line;
  for (const char c : data) {
    if (c != '\n' && line.size() < kLineMost) {
      line += c;
      continue;
    }
    AddLine(rank, line);
    line.clear();
  }
}

void TrafficReport::AddLine(int rank, const std::string& line) {
  if (line.starts_with(kMark) && Take(rank, line)) {
    return;
  }
  if (!line.empty()) {
    other_text_ += line + "\n";
    other_text_.erase(0, other_text_.size() - std::min(other_text_.size(), kOtherMost));
  }
}

// What is not as the tracer writes it is the program's own text, and the report will not be whole.
bool TrafficReport::Take(int rank, const std::string& line) {
  std::istringstream words(line.substr(kMark.size()));
  std::string what;
  std::array<int64_t, 4> n{};
  words >> what;
  for (int64_t& number : n) {
    if (!(words >> number) || number < 0 || number > kNumberMost) {
      return false;
    }
  }
  Rank& own = ranks_[size_t(rank)];
  const bool is_rank = n[0] == rank;
  if (own.is_done) {
    return false;
  }
  if (what == "done" && is_rank && n[1] == ranks() && n[2] == int64_t(own.lines.size()) && own.node >= 0) {
    own.is_done = true;
    ++whole_;
  } else if (what == "node" && is_rank && n[1] < ranks()) {
    own.node = int(n[1]);
  } else if (what == "far" && n[0] <= n[1] && n[1] < ranks()) {
    far_[{int(n[0]), int(n[1])}] = n[2];
  } else if ((what == "sent" || what == "fetched") && is_rank && n[1] < ranks()) {
    const auto self = uint32_t(n[0]);
    const auto peer = uint32_t(n[1]);
    own.messages.push_back({what == "sent" ? self : peer, what == "sent" ? peer : self, n[2], 0, n[3]});
  } else {
    return false;
  }
  own.lines.push_back(line);
  return true;
}

absl::StatusOr<rankmap::Pattern> TrafficReport::pattern() const {
  std::vector<rankmap::Message> messages;
  for (const Rank& rank : ranks_) {
    messages.insert(messages.end(), rank.messages.begin(), rank.messages.end());
  }
  return rankmap::Pattern::Create(ranks(), std::move(messages));
}

int64_t TrafficReport::RoundTrip(int node, int other) const {
  const auto found = far_.find({std::min(node, other), std::max(node, other)});
  return found == far_.end() ? 0 : found->second;
}

std::string TrafficReport::Print() const {
  std::string text;
  for (const Rank& rank : ranks_) {
    for (const std::string& line : rank.lines) {
      text += line + "\n";
    }
  }
  return text;
}

// Each rank's lines end in its "done".
absl::StatusOr<TrafficReport> TrafficReport::Parse(std::string_view text, int ranks) {
  TrafficReport report(ranks);
  int rank = 0;
  while (!text.empty() && rank < ranks) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    report.Add(rank, text.substr(0, end));
    text.remove_prefix(end);
    rank += report.ranks_[size_t(rank)].is_done ? 1 : 0;
  }
  if (!report.is_whole() || !text.empty()) {
    return absl::InvalidArgumentError(fmt::format("not a whole report of the traffic of {} ranks", ranks));
  }
  return report;
}

}  // namespace sekisho::client
