// SPDX-License-Identifier: Apache-2.0
#include "client/job/text_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "common/refusal.h"

namespace sekisho::client {

absl::StatusOr<std::string> ReadTextFile(const std::string& path, const std::string& remedy) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char piece[4096];
  while (file.read(piece, sizeof piece) || file.gcount() > 0) {
    text.append(piece, file.gcount());
  }
  if (!file.is_open() || file.bad()) {
    return Refuse(absl::StatusCode::kInvalidArgument, 0, fmt::format("{}: cannot read it: {}", path, std::strerror(errno)),
                  remedy);
  }
  return text;
}

}  // namespace sekisho::client
