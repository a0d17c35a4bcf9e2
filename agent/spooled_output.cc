// SPDX-License-Identifier: Apache-2.0
#include "agent/spooled_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "agent/task/record.h"
#include "common/log.h"

namespace sekisho::agent {
namespace {

constexpr uint64_t kFreeStep = 4 << 20;
constexpr uint64_t kPage = 4096;
constexpr std::string_view kLost = "[output lost: the queue server lacks it, and its node has it no more]\n";

// The same wherever one begins: it may be sent again.
std::string LostText(uint64_t offset, uint64_t size) {
  std::string text(size, ' ');
  for (char& c : text) {
    c = kLost[offset++ % kLost.size()];
  }
  return text;
}

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
  if (std::string text; freed_ == 0 && task::ReadFile(directory_.fd(), FreedName().c_str(), text)) {
    freed_ = std::strtoull(text.c_str(), nullptr, 10);  // by an agent before us
  }
  while (!marks_.empty() && marks_.back().offset > offset) {  // not taken after all
    marks_.pop_back();
  }
  Look();
  window_.Resume(offset);
  if (offset > 0 && offset < gone()) {  // 0: as a rule no more than that the server does not name the task
    spdlog::error("output is lost: the queue server asks for what this node has no more job={} task={} bytes={}",
                  key_.job_id(), key_.task(), gone() - offset);
  }
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
  std::string data;
  if (chunk.offset < gone()) {  // a gap would not be taken, and zeros are nothing that the task has written
    data = LostText(chunk.offset, std::min<uint64_t>(chunk.size, gone() - chunk.offset));
  } else {
    data.resize(chunk.size);
    const ssize_t n = pread(fd, data.data(), data.size(), static_cast<off_t>(chunk.position));
    if (n <= 0) {
      return false;
    }
    data.resize(static_cast<size_t>(n));
  }
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

void SpooledOutput::Taken(uint64_t offset, Clock::time_point now) {
  const uint64_t before = window_.in_flight();
  window_.Taken(offset);
  outbox_.Taken(before - window_.in_flight());
  if (window_.taken() >= (marks_.empty() ? freed_ : marks_.back().offset) + kFreeStep) {
    marks_.push_back({now, window_.taken()});
  }
  Free(now);
}

void SpooledOutput::Free(Clock::time_point now) {
  uint64_t end = 0;
  for (; !marks_.empty() && now - marks_.front().time >= kKeptFor; marks_.pop_front()) {
    end = marks_.front().offset;
  }
  if (end == 0) {
    return;
  }
  Look();
  end -= window_.Position(end) % kPage;
  const uint64_t from = window_.Position(freed_);
  const uint64_t to = window_.Position(end);
  const int fd = to > from ? Open(O_WRONLY) : -1;
  if (fd < 0) {
    return;  // it goes with the next step
  }
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                static_cast<off_t>(to - from)) == 0) {
    freed_ = end;
    // For the agent after us.  Not before: a full disk may have room for it only now.
    task::WriteFile(directory_.fd(), FreedName().c_str(), std::to_string(freed_) + "\n", task::Durability::kProcess);
  }
  close(fd);
}

}  // namespace sekisho::agent
