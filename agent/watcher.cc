// SPDX-License-Identifier: Apache-2.0
#include "agent/watcher.h"

#include <sys/inotify.h>
#include <unistd.h>

#include "common/status.h"

namespace sekisho::agent {

Watcher::Watcher(Loop& loop) : inotify_(loop, inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  CHECK(inotify_.is_open());
  Wait();
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

void Watcher::Read() {
  alignas(inotify_event) char buffer[16 << 10];
  ssize_t size = 0;
  while ((size = read(inotify_.native_handle(), buffer, sizeof buffer)) > 0) {
    std::string_view last_name;
    int last_id = -1;
    for (const char* at = buffer; at < buffer + size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof *event + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) {
        Dispatch(-1, "");
        continue;
      }
      const std::string_view name = event->len > 0 ? event->name : "";
      if ((event->mask & IN_IGNORED) == 0 && (event->wd != last_id || name != last_name)) {
        Dispatch(event->wd, name);
      }
      last_id = event->wd;
      last_name = name;
    }
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
