// SPDX-License-Identifier: Apache-2.0
// Changes of files in the tasks' directories, by inotify: nothing is polled.  One for a process: an account may
// have few of them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <asio/posix/stream_descriptor.hpp>

#include "common/loop.h"

namespace sekisho::agent {

class Watcher {
 public:
  // `name`: the file that was written, or appeared; empty: anything may have.
  using Handler = std::function<void(std::string_view name)>;

  explicit Watcher(Loop& loop);
  // Not ok: the kernel gives this user no more of them, which is to be said before one is needed.
  static absl::Status CanWatch();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // An id for Remove; negative: the kernel refuses to watch more.
  int Add(const std::string& directory, Handler handler);
  void Remove(int id);

 private:
  void Wait();
  void Read();
  void Dispatch(int id, std::string_view name);

  asio::posix::stream_descriptor inotify_;
  std::map<int, Handler> handlers_;
};

}  // namespace sekisho::agent
