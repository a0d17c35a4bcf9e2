// SPDX-License-Identifier: Apache-2.0
#include "agent/watcher.h"

#include <sys/inotify.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace sekisho::agent {

absl::Status Watcher::CanWatch() {
  const int fd = inotify_init1(IN_CLOEXEC);
  if (fd < 0) {
    return absl::ResourceExhaustedError(fmt::format(
        "cannot watch files: {}: raise fs.inotify.max_user_instances", std::strerror(errno)));
  }
  close(fd);
  return absl::OkStatus();
}

Watcher::Watcher(Loop& loop) : inotify_(loop) {
  if (const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC); fd >= 0) {  // else Add says no
    inotify_.assign(fd);
    Wait();
  }
}

int Watcher::Add(const std::string& directory, Handler handler) {
  const int id = inotify_add_watch(inotify_.native_handle(), directory.c_str(),
                                   IN_MODIFY | IN_MOVED_TO | IN_CLOSE_WRITE);
  if (id >= 0) {
    handlers_[id] = std::move(handler);
  }
  return id;
}

void Watcher::Remove(int id) {
  if (handlers_.erase(id) > 0) {
    inotify_rm_watch(inotify_.native_handle(), id);
  }
}

void Watcher::Wait() {
  inotify_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [this](const std::error_code& error) {
                        if (!error) {
                          Read();
                          Wait();
                        }
                      });
}

// One buffer, each file in it once: a task can write faster than we can look, and the loop has others to
// serve.
void Watcher::Read() {
  alignas(inotify_event) char buffer[16 << 10];
  const ssize_t size = read(inotify_.native_handle(), buffer, sizeof buffer);
  std::set<std::pair<int, std::string_view>> changed;
  for (const char* at = buffer; at < buffer + size;) {
    const auto* event = reinterpret_cast<const inotify_event*>(at);
    at += sizeof *event + event->len;
    if ((event->mask & IN_Q_OVERFLOW) != 0) {
      changed.emplace(-1, "");
    } else if ((event->mask & IN_IGNORED) == 0) {
      changed.emplace(event->wd, event->len > 0 ? event->name : "");
    }
  }
  for (const auto& [id, name] : changed) {
    Dispatch(id, name);
  }
}

// A handler may add and remove watches.
void Watcher::Dispatch(int id, std::string_view name) {
  std::map<int, Handler> called;
  if (id < 0) {
    called = handlers_;
  } else if (const auto found = handlers_.find(id); found != handlers_.end()) {
    called.insert(*found);
  }
  for (const auto& [watch, handler] : called) {
    if (handlers_.count(watch) > 0) {
      handler(name);
    }
  }
}

}  // namespace sekisho::agent
