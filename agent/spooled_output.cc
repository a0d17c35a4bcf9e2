// SPDX-License-Identifier: Apache-2.0
#include "agent/spooled_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sekisho::agent {
namespace {

constexpr uint64_t kFreeStep = 4 << 20;
constexpr uint64_t kPage = 4096;

}  // namespace

SpooledOutput::SpooledOutput(const TaskDirectory& directory, const proto::TaskKey& key,
                             Stream stream, bool is_ours, uint64_t limit, Outbox& outbox)
    : directory_(directory),
      key_(key),
      stream_(stream),
      is_ours_(is_ours),
      outbox_(outbox),
      window_(limit) {}

const char* SpooledOutput::name() const {
  return stream_ == proto::OutputChunk::STDOUT ? task::kStdoutFile : task::kStderrFile;
}

// The file is the account's, which may hold a lease on it: we do not wait for that.  -1: look again later.
int SpooledOutput::Open(int flags) const {
  return openat(directory_.fd(), name(), flags | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

void SpooledOutput::Look() {
  struct stat info {};
  if (is_ours_ && fstatat(directory_.fd(), name(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    window_.SetSize(static_cast<uint64_t>(info.st_size));
  }
}

void SpooledOutput::Resume(uint64_t offset) {
  Look();
  window_.Resume(offset);
}

void SpooledOutput::Pump() {
  Look();
  if (!outbox_.is_connected() || !window_.Next()) {
    return;
  }
  const int fd = Open(O_RDONLY);
  auto chunk = window_.Next();
  while (fd >= 0 && chunk && outbox_.HasRoom() && SendChunk(fd, *chunk)) {
    chunk = window_.Next();
  }
  if (fd >= 0) {
    close(fd);
  }
}

bool SpooledOutput::SendChunk(int fd, const OutputWindow::Chunk& chunk) {
  std::string data(chunk.size, '\0');
  const ssize_t n = pread(fd, data.data(), data.size(), static_cast<off_t>(chunk.position));
  if (n <= 0) {
    return false;
  }
  data.resize(static_cast<size_t>(n));
  window_.Sent(data.size());
  outbox_.Sent(data.size());
  proto::AgentMessage message;
  proto::AgentMessage::Output& output = *message.mutable_output();
  *output.mutable_task() = key_;
  output.set_stream(stream_);
  output.set_offset(chunk.offset);
  output.set_data(std::move(data));
  outbox_.Push(std::move(message));
  return true;
}

void SpooledOutput::Taken(uint64_t offset) {
  const uint64_t before = window_.in_flight();
  window_.Taken(offset);
  outbox_.Taken(before - window_.in_flight());
  const uint64_t free_to = window_.taken_position() / kPage * kPage;
  if (free_to >= freed_ + kFreeStep) {
    const int fd = Open(O_WRONLY);
    if (fd >= 0) {
      fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(freed_),
                static_cast<off_t>(free_to - freed_));
      close(fd);
    }
    freed_ = free_to;
  }
}

}  // namespace sekisho::agent
