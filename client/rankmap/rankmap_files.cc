// SPDX-License-Identifier: Apache-2.0
#include "client/rankmap/rankmap_files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/rankmap/rankmap_otf2.h"
#include "client/rankmap/rankmap_tree.h"
#include "common/write_all.h"
#include "rankmap/errors.h"
#include "rankmap/evaluate.h"
#include "rankmap/importers.h"
#include "rankmap/network_format.h"
#include "rankmap/outputs.h"
#include "rankmap/pattern_format.h"
#include "rankmap/text.h"

namespace sekisho::client {
namespace {

constexpr off_t kMaxFileBytes = off_t{2} << 30;

absl::Status SystemError(const std::string& path, std::string_view doing) {
  return absl::InvalidArgumentError(fmt::format("{}: {}: {}", path, doing, std::strerror(errno)));
}

// PREFIX.<rank>.prof, or all of a directory.
absl::StatusOr<std::vector<rankmap::NamedText>> MonitoringFiles(
    const std::filesystem::path& source) {
  std::error_code error;
  const bool is_directory = std::filesystem::is_directory(source, error);
  const std::filesystem::path directory = is_directory               ? source
                                          : source.has_parent_path() ? source.parent_path()
                                                                     : ".";
  const std::string prefix = is_directory ? "" : source.filename().string() + ".";
  std::vector<rankmap::NamedText> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".prof")) {
      ASSIGN_OR_RETURN(std::string text, ReadFile(entry.path().string()));
      files.push_back({entry.path().string(), std::move(text)});
    }
  }
  return files;
}

// Of the `index`-th line that says something, from 0; of the last, if there are fewer.
int LineOf(const std::string& path, size_t index) {
  const auto text = ReadFile(path);
  if (!text.ok()) {
    return 0;
  }
  rankmap::LineReader reader(*text, path);
  std::vector<std::string_view> words;
  while (reader.Next(words) && index-- > 0) {
  }
  return reader.line();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return SystemError(path, "cannot be opened");
  }
  std::string text;
  struct stat status {};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    text.reserve(static_cast<size_t>(std::min(status.st_size, kMaxFileBytes)));
  }
  ssize_t count = 0;
  std::vector<char> buffer(1 << 20);
  while ((count = read(file, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<size_t>(count));
    if (static_cast<off_t>(text.size()) > kMaxFileBytes) {
      close(file);
      return absl::InvalidArgumentError(fmt::format("{}: larger than 2 GiB", path));
    }
  }
  if (count < 0) {
    const absl::Status status_read = SystemError(path, "cannot be read");
    close(file);
    return status_read;
  }
  close(file);
  return text;
}

namespace {

// A device or a pipe takes what is written and must stay what it is.
absl::Status WriteThrough(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  const bool is_good = file >= 0 && WriteAll(file, text);
  const absl::Status status = is_good ? absl::OkStatus() : SystemError(path, "cannot be written");
  if (file >= 0) {
    close(file);
  }
  return status;
}

}  // namespace

absl::Status WriteFile(const std::string& path, std::string_view text) {
  struct stat there {};
  if (stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return WriteThrough(path, text);
  }
  std::string temporary = path + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  if (file < 0) {
    return SystemError(path, "cannot be written");
  }
  bool is_good = fchmod(file, 0644) == 0 && WriteAll(file, text);
  is_good = close(file) == 0 && is_good;
  if (!is_good || rename(temporary.c_str(), path.c_str()) != 0) {
    const absl::Status status = SystemError(path, "cannot be written");
    unlink(temporary.c_str());
    return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadNetworkText(const std::string& source) {
  const std::string ending = ".edges";
  const size_t end = source.rfind(ending);
  const bool is_tree = end != std::string::npos && (end + ending.size() == source.size() ||
                                                    source[end + ending.size()] == ',');
  if (!is_tree) {
    return ReadFile(source);
  }
  const std::string tree = source.substr(0, end + ending.size());
  const std::string hosts = tree.size() < source.size() ? source.substr(tree.size() + 1) : "";
  ASSIGN_OR_RETURN(const std::string text, ReadFile(tree));
  std::string names;
  if (!hosts.empty()) {
    ASSIGN_OR_RETURN(names, ReadFile(hosts));
  }
  return NetworkOfTree(text, tree, names, hosts);
}

absl::StatusOr<rankmap::Network> ReadNetwork(const std::string& source) {
  if (rankmap::IsNetworkSpec(source)) {
    return rankmap::ParseNetworkSpec(source);
  }
  ASSIGN_OR_RETURN(const std::string text, ReadNetworkText(source));
  return rankmap::ParseNetwork(text, source);
}

absl::StatusOr<rankmap::Pattern> ReadPattern(const std::string& path) {
  const std::filesystem::path name(path);
  std::error_code error;
  if (!std::filesystem::exists(name, error) || std::filesystem::is_directory(name, error)) {
    if (auto files = MonitoringFiles(name); files.ok() && !files->empty()) {
      return rankmap::ParseMonitoring(*files);
    }
  }
  if (name.extension() == ".otf2") {
    return ReadOtf2(path);
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  if (name.extension() == ".grf") {
    return rankmap::ParseScotchGraph(text, path);
  }
  if (name.extension() == ".graph") {
    return rankmap::ParseMetisGraph(text, path);
  }
  if (name.extension() == ".dat") {
    ASSIGN_OR_RETURN(const rankmap::QapInstance instance, rankmap::ParseQap(text, path));
    return rankmap::PatternOfQap(instance);
  }
  return rankmap::ParsePattern(text, path);
}

absl::Status CheckFit(const ProblemFiles& files, const rankmap::Pattern& pattern, const rankmap::Network& network,
                      rankmap::Objective objective) {
  const absl::Status status = rankmap::CheckProblem(pattern, network, objective);
  if (status.ok() || (rankmap::NeedsLinks(objective) && network.links() == 0)) {
    return status;
  }
  return rankmap::errors::BadFile(files.pattern, LineOf(files.pattern, 0),
                                  fmt::format("for the network {}: {}", files.network, std::string(status.message())));
}

absl::StatusOr<std::vector<int>> ReadNodes(const std::string& path, const rankmap::Network& network,
                                           std::optional<int> ranks) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(std::vector<int> nodes, rankmap::ParsePlacement(text, path));
  const auto error = [&](size_t index, const std::string& what) {
    return rankmap::errors::BadFile(path, LineOf(path, index), what);
  };
  if (ranks && nodes.size() != size_t(*ranks)) {
    return error(std::min(nodes.size() - 1, size_t(*ranks)),
                 fmt::format("{} lines for {} ranks: expected one node for each", nodes.size(), *ranks));
  }
  std::vector<int> taken(size_t(network.nodes()));
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    if (nodes[rank] >= network.nodes()) {
      return error(rank, fmt::format("rank {} on node {}: the network has {}", rank, nodes[rank], network.nodes()));
    }
    if (++taken[size_t(nodes[rank])] > network.capacity()) {
      return error(rank, fmt::format("rank {} on node {}, which is taken: capacity {}", rank, nodes[rank], network.capacity()));
    }
  }
  return nodes;
}

absl::StatusOr<rankmap::Placement> ReadPlacement(const std::string& path,
                                                 const rankmap::Pattern& pattern,
                                                 const rankmap::Network& network) {
  ASSIGN_OR_RETURN(const std::vector<int> nodes, ReadNodes(path, network, pattern.ranks()));
  return rankmap::FromNodes(network, pattern.ranks(), nodes);
}

absl::StatusOr<std::vector<std::string>> ReadHosts(const std::string& path, int nodes) {
  ASSIGN_OR_RETURN(const std::string names, ReadFile(path));
  ASSIGN_OR_RETURN(std::vector<std::string> hosts, rankmap::ParseHosts(names, path));
  if (static_cast<int>(hosts.size()) < nodes) {
    return rankmap::errors::BadFile(path, LineOf(path, hosts.size()),
                                    fmt::format("{} hosts for {} nodes: expected one for each", hosts.size(), nodes));
  }
  return hosts;
}

}  // namespace sekisho::client
