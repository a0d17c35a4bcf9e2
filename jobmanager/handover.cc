// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/handover.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <asio/buffer.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
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

size_t SizeOf(const std::array<unsigned char, 4>& length) {
  return static_cast<size_t>(length[0]) << 24 | static_cast<size_t>(length[1]) << 16 |
         static_cast<size_t>(length[2]) << 8 | length[3];
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
  std::array<unsigned char, 4> length;
  RETURN_IF_ERROR(ReadAll(control_fd, reinterpret_cast<char*>(length.data()), length.size()));
  const size_t size = SizeOf(length);
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

void TellStopping(int control_fd) { WriteByte(control_fd, 's').IgnoreError(); }  // it may be gone

awaitable<void> AttendGatekeeper(Loop& loop, int control_fd, std::function<void(const proto::Handover&)> renew) {
  asio::posix::stream_descriptor control(loop, dup(control_fd));
  for (;;) {
    std::array<unsigned char, 4> length;
    const auto [cut, length_bytes] = co_await asio::async_read(control, asio::buffer(length), kAsTuple);
    if (cut || SizeOf(length) > kHandoverBytesMax) {
      co_return;
    }
    if (SizeOf(length) == 0) {  // whether we are there
      const auto [gone, bytes] = co_await asio::async_write(control, asio::buffer("a", 1), kAsTuple);
      if (gone) {
        co_return;
      }
      continue;
    }
    std::string text(SizeOf(length), '\0');
    const auto [ended, text_bytes] = co_await asio::async_read(control, asio::buffer(text), kAsTuple);
    proto::Handover handover;
    if (ended || !handover.ParseFromString(text)) {
      co_return;
    }
    renew(handover);
  }
}

}  // namespace sekisho::jobmanager
