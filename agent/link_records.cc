// SPDX-License-Identifier: Apache-2.0
#include "agent/link_records.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sekisho::agent {
namespace {

constexpr char kFile[] = "files/links";  // kSmallFiles, and as the queue server names it
constexpr uint64_t kBytesMax = 256 * 1024;

// The folder is the account's: it may have put anything there.
bool IsItsOwn(int fd, const task::Spec& spec, struct stat& info) {
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == spec.uid;
}

}  // namespace

LinkRecords::LinkRecords(const TaskDirectory& directory, const task::Spec& spec, Watcher& watcher,
                         Outbox& outbox)
    : directory_(directory), spec_(spec), watcher_(watcher), outbox_(outbox) {
  if (directory.Has(kFile)) {
    watch_ = watcher.Add(directory.path() + "/" + task::kSmallFiles,
                         [this](std::string_view) { Pump(); });
  }
}

LinkRecords::~LinkRecords() { watcher_.Remove(watch_); }

void LinkRecords::Resume() {
  sent_ = 0;
  Pump();
}

void LinkRecords::Pump() {
  if (watch_ < 0 || !outbox_.is_connected()) {
    return;
  }
  const int fd = openat(directory_.fd(), kFile, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  struct stat info {};
  if (fd >= 0 && IsItsOwn(fd, spec_, info)) {
    const uint64_t end = std::min<uint64_t>(static_cast<uint64_t>(info.st_size), kBytesMax);
    std::string data(end > sent_ ? end - sent_ : 0, '\0');
    const ssize_t got = data.empty() ? 0 : pread(fd, data.data(), data.size(), static_cast<off_t>(sent_));
    if (got > 0) {
      data.resize(static_cast<size_t>(got));
      proto::AgentMessage message;
      proto::AgentMessage::Links& links = *message.mutable_links();
      links.mutable_task()->set_job_id(spec_.job_id);
      links.mutable_task()->set_task(spec_.task);
      links.set_offset(sent_);
      links.set_data(std::move(data));
      sent_ += static_cast<uint64_t>(got);
      outbox_.Push(std::move(message));
    }
  }
  if (fd >= 0) {
    close(fd);
  }
}

}  // namespace sekisho::agent
