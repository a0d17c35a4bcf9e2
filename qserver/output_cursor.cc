// SPDX-License-Identifier: Apache-2.0
#include "qserver/output_cursor.h"

#include <algorithm>

namespace sekisho::qserver {
namespace {

int TaskCountOf(const Job& job) {
  int count = int(job.tasks.size());
  for (const proto::TaskStatus& task : job.status.task()) {
    count = std::max(count, task.task() + 1);
  }
  return count;
}

}  // namespace

OutputCursor::OutputCursor(const proto::OutputRequest& request)
    : task_(std::max(-1, request.task())), room_(request.most_bytes() > 0 ? request.most_bytes() : UINT64_MAX) {
  for (const proto::OutputPosition& position : request.position()) {
    sent_[{position.task(), int(position.stream())}] = position.offset();
  }
}

std::vector<OutputCursor::Key> OutputCursor::Due(const Job& job, bool is_all_there) const {
  std::vector<Key> due;
  const int end = is_all_there ? TaskCountOf(job) : int(job.tasks.size());
  for (int task = std::max(0, task_ - 1); task < (task_ == 0 ? end : std::min(end, task_)); ++task) {
    for (int stream = 0; stream < 2; ++stream) {
      const Key key{task, stream};
      if (is_all_there ? empty_.count(key) == 0 : job.tasks[size_t(task)].spooled[size_t(stream)] > offset(key)) {
        due.push_back(key);
      }
    }
  }
  return due;
}

uint64_t OutputCursor::offset(const Key& key) const {
  const auto found = sent_.find(key);
  return found == sent_.end() ? 0 : found->second;
}

void OutputCursor::Read(const Key& key, size_t bytes) {
  room_ -= std::min<uint64_t>(room_, bytes);
  if (bytes == 0) {
    empty_.insert(key);
  } else {
    sent_[key] += bytes;
    empty_.erase(key);
  }
}

}  // namespace sekisho::qserver
