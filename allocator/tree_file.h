// SPDX-License-Identifier: Apache-2.0
// The site's network as the queue server, or an administrator by `sekisho topology infer --out`,
// wrote it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "topology/text_format.h"

namespace sekisho::allocator {

class TreeFile {
 public:
  explicit TreeFile(std::string path) : path_(std::move(path)) {}

  // The tree, if there is another than at the last call.  What cannot be read is said once and
  // changes nothing.
  std::optional<topology::NamedTree> Changed();

 private:
  std::string path_;
  std::filesystem::file_time_type seen_{};
  uintmax_t seen_size_ = 0;
};

}  // namespace sekisho::allocator
