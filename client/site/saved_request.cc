// SPDX-License-Identifier: Apache-2.0
#include "client/site/saved_request.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/refusal.h"

namespace sekisho::client {
namespace {

absl::Status CannotWrite(const std::string& path, int error) {
  return Refuse(absl::StatusCode::kInvalidArgument, 0,
                fmt::format("--save-request: {}: cannot write it ({})", path, std::strerror(error)),
                "name a file in a directory that you may write to");
}

}  // namespace

absl::Status SaveRequest(const proto::SignedRequest& request, const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST) {
    return absl::InvalidArgumentError(
        fmt::format("--save-request: {} exists already: remove it, or name another file", path));
  }
  if (fd < 0) {
    return CannotWrite(path, errno);
  }
  const bool is_written = request.SerializeToFileDescriptor(fd);
  const int error = errno;
  close(fd);
  if (!is_written) {
    unlink(path.c_str());
    return CannotWrite(path, error);
  }
  return absl::OkStatus();
}

}  // namespace sekisho::client
