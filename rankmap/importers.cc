// SPDX-License-Identifier: Apache-2.0
#include "rankmap/importers.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>

#include "rankmap/errors.h"
#include "rankmap/text.h"

namespace sekisho::rankmap {
namespace {

constexpr int64_t kMaxLoad = int64_t{1} << 40;
constexpr size_t kMaxArcs = size_t{1} << 28;

using Words = std::vector<std::string_view>;

// Every arc must come back with the same weight.
absl::StatusOr<Pattern> Undirected(const LineReader& reader, int ranks,
                                   std::vector<Message> messages) {
  auto pattern = Pattern::Create(ranks, std::move(messages));
  if (!pattern.ok()) {
    return reader.Error(std::string(pattern.status().message()));
  }
  const Graph graph = MakeGraph(*pattern, Weight::kBytes);
  for (int v = 0; v < graph.size(); ++v) {
    for (const Graph::Arc& arc : graph.Of(v)) {
      if (arc.in != arc.out) {
        return reader.Error(
            fmt::format("edge {} - {} has not the same weight both ways", v, arc.peer));
      }
    }
  }
  return pattern;
}

// All the numbers of a line-free format.
class Numbers {
 public:
  Numbers(LineReader& reader) : reader_(reader) {}

  absl::StatusOr<int64_t> Next(int64_t low, int64_t high, std::string_view name) {
    while (at_ == words_.size()) {
      at_ = 0;
      if (!reader_.Next(words_)) {
        words_.clear();
        return reader_.Error(fmt::format("the file is cut off: expected {}", name));
      }
    }
    return reader_.Integer(words_[at_++], low, high, name);
  }

  bool IsAtEnd() {
    if (at_ < words_.size()) {
      return false;
    }
    at_ = 0;
    return !reader_.Next(words_);
  }

 private:
  LineReader& reader_;
  Words words_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<Pattern> ParseScotchGraph(std::string_view text, std::string_view file) {
  LineReader reader(text, file);
  Numbers numbers(reader);
  ASSIGN_OR_RETURN([[maybe_unused]] const int64_t version, numbers.Next(0, 0, "version 0"));
  ASSIGN_OR_RETURN(const int64_t vertices, numbers.Next(1, Pattern::kMaxRanks, "vertices"));
  ASSIGN_OR_RETURN(const int64_t arcs, numbers.Next(0, kMaxArcs, "arcs"));
  ASSIGN_OR_RETURN(const int64_t base, numbers.Next(0, 1, "base"));
  ASSIGN_OR_RETURN(const int64_t flags, numbers.Next(0, 111, "flags"));
  const bool has_labels = flags / 100 == 1;
  const bool has_edge_loads = flags / 10 % 10 == 1;
  const bool has_vertex_loads = flags % 10 == 1;
  std::vector<Message> messages;
  for (int64_t v = 0; v < vertices; ++v) {
    if (has_labels) {
      RETURN_IF_ERROR(numbers.Next(0, kMaxLoad, "label").status());
    }
    if (has_vertex_loads) {
      RETURN_IF_ERROR(numbers.Next(0, kMaxLoad, "load").status());
    }
    ASSIGN_OR_RETURN(const int64_t degree, numbers.Next(0, vertices, "degree"));
    for (int64_t k = 0; k < degree; ++k) {
      int64_t load = 1;
      if (has_edge_loads) {
        ASSIGN_OR_RETURN(load, numbers.Next(0, kMaxLoad, "edge load"));
      }
      ASSIGN_OR_RETURN(const int64_t peer, numbers.Next(base, base + vertices - 1, "neighbour"));
      messages.push_back(
          {static_cast<uint32_t>(v), static_cast<uint32_t>(peer - base), load, 0, 1});
    }
  }
  if (static_cast<int64_t>(messages.size()) != arcs) {
    return reader.Error(fmt::format("{} arcs, the header says {}", messages.size(), arcs));
  }
  if (!numbers.IsAtEnd()) {
    return reader.Error(fmt::format("more than {} vertices", vertices));
  }
  if (reader.is_cut()) {
    return reader.CutOff();
  }
  return Undirected(reader, static_cast<int>(vertices), std::move(messages));
}

// A vertex without neighbours is an empty line, which counts here: split by hand.
absl::StatusOr<Pattern> ParseMetisGraph(std::string_view text, std::string_view file) {
  std::vector<std::string_view> lines;
  std::vector<int> numbers;  // of these in the file: comments are none of them
  int number = 0;
  for (size_t first = 0; first < text.size();) {
    const size_t end = std::min(text.find('\n', first), text.size());
    const std::string_view line = text.substr(first, end - first);
    ++number;
    if (!line.starts_with('%')) {
      lines.push_back(line);
      numbers.push_back(number);
    }
    first = end + 1;
  }
  if (!text.empty() && text.back() != '\n') {
    return errors::BadFile(file, number, "the last line does not end: the file is cut off");
  }
  const auto at = [&](size_t line) {
    return line < lines.size() ? lines[line] : std::string_view();
  };
  LineReader header(at(0), file, '\0');
  Words words;
  if (!header.Next(words) || words.size() < 2 || words.size() > 4) {
    return header.Error("expected 'vertices edges [format]'");
  }
  ASSIGN_OR_RETURN(const int64_t vertices,
                   header.Integer(words[0], 1, Pattern::kMaxRanks, "vertices"));
  ASSIGN_OR_RETURN(const int64_t edges, header.Integer(words[1], 0, kMaxArcs, "edges"));
  int64_t format = 0;
  if (words.size() > 2) {
    ASSIGN_OR_RETURN(format, header.Integer(words[2], 0, 111, "format"));
  }
  const bool has_sizes = format / 100 == 1;
  const bool has_vertex_weights = format / 10 % 10 == 1;
  const bool has_edge_weights = format % 10 == 1;
  const size_t skip = (has_sizes ? 1 : 0) + (has_vertex_weights ? 1 : 0);
  if (lines.size() < static_cast<size_t>(vertices) + 1) {
    return errors::BadFile(file, number, "the file is cut off");
  }
  std::vector<Message> messages;
  for (int64_t v = 0; v < vertices; ++v) {
    LineReader reader(at(v + 1), file, '\0');
    const auto error = [&](std::string_view what) {
      return errors::BadFile(file, numbers[v + 1], what);
    };
    reader.Next(words);
    const size_t each = has_edge_weights ? 2 : 1;
    if (words.size() < skip || (words.size() - skip) % each != 0) {
      return error("expected neighbours, each with its weight if the format says so");
    }
    for (size_t i = skip; i < words.size(); i += each) {
      const auto peer = reader.Integer(words[i], 1, vertices, "neighbour");
      const auto weight = each == 2 ? reader.Integer(words[i + 1], 0, kMaxLoad, "weight")
                                    : absl::StatusOr<int64_t>(1);
      if (!peer.ok() || !weight.ok()) {
        return error(fmt::format("'{}': expected a neighbour from 1 to {} and a weight",
                                 Shown(words[i]), vertices));
      }
      messages.push_back(
          {static_cast<uint32_t>(v), static_cast<uint32_t>(*peer - 1), *weight, 0, 1});
    }
  }
  for (size_t line = static_cast<size_t>(vertices) + 1; line < lines.size(); ++line) {
    LineReader reader(lines[line], file, '\0');
    if (reader.Next(words)) {
      return errors::BadFile(file, numbers[line], fmt::format("more than {} vertices", vertices));
    }
  }
  if (static_cast<int64_t>(messages.size()) != 2 * edges) {
    return header.Error(fmt::format("{} arcs, the header says {} edges", messages.size(), edges));
  }
  return Undirected(header, static_cast<int>(vertices), std::move(messages));
}

std::string PrintScotchGraph(const Pattern& pattern) {
  const Graph graph = MakeGraph(pattern, Weight::kBytes);
  std::string text = fmt::format("0\n{} {}\n0 010\n", graph.size(), graph.arcs.size());
  for (int v = 0; v < graph.size(); ++v) {
    fmt::format_to(std::back_inserter(text), "{}", graph.Of(v).size());
    for (const Graph::Arc& arc : graph.Of(v)) {
      fmt::format_to(std::back_inserter(text), " {} {}", arc.both(), arc.peer);
    }
    text += '\n';
  }
  return text;
}

std::string PrintMetisGraph(const Pattern& pattern) {
  const Graph graph = MakeGraph(pattern, Weight::kBytes);
  std::string text = fmt::format("{} {} 001\n", graph.size(), graph.arcs.size() / 2);
  for (int v = 0; v < graph.size(); ++v) {
    const char* separator = "";
    for (const Graph::Arc& arc : graph.Of(v)) {
      fmt::format_to(std::back_inserter(text), "{}{} {}", separator, arc.peer + 1, arc.both());
      separator = " ";
    }
    text += '\n';
  }
  return text;
}

namespace {

// Of PREFIX.<rank>.prof: PREFIX and the rank.
struct DumpName {
  std::string prefix;
  uint32_t rank = 0;
};

absl::StatusOr<DumpName> ParseDumpName(const std::string& name) {
  const size_t end = name.rfind('.');
  const size_t dot = end == std::string::npos || end == 0 ? end : name.rfind('.', end - 1);
  DumpName parsed;
  if (dot != std::string::npos && dot < end) {
    const char* const last = name.data() + end;
    const auto [stop, error] = std::from_chars(name.data() + dot + 1, last, parsed.rank);
    if (error == std::errc() && stop == last && parsed.rank < Pattern::kMaxRanks) {
      parsed.prefix = name.substr(0, dot);
      return parsed;
    }
  }
  return errors::BadFile(name, 0, "expected a name as PREFIX.<rank>.prof");
}

// "D <communicator> procs: 0,1,2": the highest of them, if that is what the line says.
uint32_t HighestMember(const Words& words) {
  uint32_t highest = 0;
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    std::string_view list = words[i] == "procs:" ? words[i + 1] : "";
    while (!list.empty()) {
      uint32_t rank = 0;
      const auto [stop, error] = std::from_chars(list.data(), list.data() + list.size(), rank);
      if (error != std::errc() || rank >= Pattern::kMaxRanks) {
        break;
      }
      highest = std::max(highest, rank);
      list.remove_prefix(std::min<size_t>(stop - list.data() + 1, list.size()));
    }
  }
  return highest;
}

}  // namespace

absl::StatusOr<Pattern> ParseMonitoring(std::span<const NamedText> files) {
  std::vector<Message> messages;
  std::map<uint32_t, std::string> names;  // by rank
  uint32_t highest = 0;
  std::string prefix;
  for (const NamedText& file : files) {
    ASSIGN_OR_RETURN(const DumpName name, ParseDumpName(file.name));
    if (const auto [other, is_new] = names.emplace(name.rank, file.name); !is_new) {
      return errors::BadFile(file.name, 0,
                             fmt::format("rank {} has {} as well: expected one run's files", name.rank, other->second));
    }
    prefix = name.prefix;
    highest = std::max(highest, name.rank);
    LineReader reader(file.text, file.name, '\0');
    Words words;
    while (reader.Next(words)) {
      if (words[0] == "D") {
        highest = std::max(highest, HighestMember(words));
      }
      if (words[0] != "E" && words[0] != "I") {
        continue;  // headings, one-sided, collectives (already counted as point to point)
      }
      if (words.size() < 7 || words[4] != "bytes" || words[6] != "msgs") {
        return reader.Error("expected 'E source target N bytes N msgs sent'");
      }
      Message m;
      ASSIGN_OR_RETURN(m.source, reader.Integer(words[1], 0, Pattern::kMaxRanks - 1, "source"));
      ASSIGN_OR_RETURN(m.target, reader.Integer(words[2], 0, Pattern::kMaxRanks - 1, "target"));
      ASSIGN_OR_RETURN(m.bytes, reader.Integer(words[3], 0, int64_t{1} << 53, "bytes"));
      ASSIGN_OR_RETURN(m.count, reader.Integer(words[5], 0, int64_t{1} << 53, "messages"));
      highest = std::max({highest, m.source, m.target});
      messages.push_back(m);
    }
    if (reader.is_cut()) {
      return reader.CutOff();
    }
  }
  if (files.empty()) {
    return errors::BadPattern("no files of pml_monitoring (PREFIX.<rank>.prof)");
  }
  // A rank that talks to nobody still has a file; without one, what it sends would not be there.
  for (uint32_t rank = 0; rank <= highest; ++rank) {
    if (!names.contains(rank)) {
      return errors::BadFile(fmt::format("{}.{}.prof", prefix, rank), 0,
                             fmt::format("is missing: the run had {} ranks or more", highest + 1));
    }
  }
  return Pattern::Create(static_cast<int>(highest) + 1, std::move(messages));
}

absl::StatusOr<Pattern> PatternOfQap(const QapInstance& instance) {
  std::vector<Message> messages;
  for (int i = 0; i < instance.size; ++i) {
    for (int j = 0; j < instance.size; ++j) {
      if (const int64_t flow = instance.a[i * instance.size + j]; flow > 0) {
        messages.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(j), flow, 0, flow});
      }
    }
  }
  return Pattern::Create(instance.size, std::move(messages));
}

}  // namespace sekisho::rankmap
