// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/handover.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <asio/posix/stream_descriptor.hpp>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/log.h"

namespace sekisho::jobmanager {
namespace {

constexpr size_t kHandoverBytesMax = 1 << 20;

absl::Status ReadAll(int fd, char* data, size_t size) {
  while (size > 0) {
    const ssize_t count = read(fd, data, size);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return absl::UnavailableError(fmt::format("--control {}: {}: a jobmanager is started by its gatekeeper",
                                                fd, count == 0 ? "closed" : std::strerror(errno)));
    }
    data += count;
    size -= static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status WriteByte(int fd, char byte) {
  if (write(fd, &byte, 1) != 1) {
    return absl::UnavailableError(fmt::format("--control {}: {}: a jobmanager is started by its gatekeeper", fd,
                                              std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<proto::Handover> ReceiveHandover(int control_fd) {
  // Other processes of the account can neither trace us nor read our memory from here on.
  // Up to here only a program that they may not read protects us.
  if (getuid() != 0 && access("/proc/self/exe", R_OK) == 0) {
    spdlog::warn("this program can be read by account {}: another process of it could trace us as we start; "
                 "chmod 0711 closes that", getuid());
  }
  CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
  RETURN_IF_ERROR(WriteByte(control_fd, 'k'));
  unsigned char length[4];
  RETURN_IF_ERROR(ReadAll(control_fd, reinterpret_cast<char*>(length), sizeof(length)));
  const size_t size = static_cast<size_t>(length[0]) << 24 | static_cast<size_t>(length[1]) << 16 |
                      static_cast<size_t>(length[2]) << 8 | length[3];
  if (size > kHandoverBytesMax) {
    return absl::InvalidArgumentError(fmt::format("handover of {} bytes", size));
  }
  std::string text(size, '\0');
  RETURN_IF_ERROR(ReadAll(control_fd, text.data(), size));
  proto::Handover handover;
  if (!handover.ParseFromString(text)) {
    return absl::InvalidArgumentError("the gatekeeper's handover cannot be read: of another version?");
  }
  return handover;
}

absl::Status TellReady(int control_fd) { return WriteByte(control_fd, 'r'); }

awaitable<void> WaitForGatekeeper(Loop& loop, int control_fd) {
  asio::posix::stream_descriptor control(loop, dup(control_fd));
  co_await control.async_wait(asio::posix::stream_descriptor::wait_read, kAsTuple);
}

}  // namespace sekisho::jobmanager
