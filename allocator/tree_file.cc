// SPDX-License-Identifier: Apache-2.0
#include "allocator/tree_file.h"

#include <fstream>
#include <sstream>

#include "common/log.h"

namespace sekisho::allocator {

std::optional<topology::NamedTree> TreeFile::Changed() {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path_, error);
  const uintmax_t size = error ? 0 : std::filesystem::file_size(path_, error);
  if (error || (written == seen_ && size == seen_size_)) {
    return std::nullopt;
  }
  seen_ = written;
  seen_size_ = size;
  std::ostringstream text;
  text << std::ifstream(path_).rdbuf();
  absl::StatusOr<topology::NamedTree> tree = topology::ParseTree(text.str(), path_);
  if (!tree.ok()) {
    spdlog::warn("the old network stays in force: {}", std::string(tree.status().message()));
    return std::nullopt;
  }
  spdlog::info("network read topology={} nodes={}", path_, tree->tree.host_count);
  return *std::move(tree);
}

}  // namespace sekisho::allocator
