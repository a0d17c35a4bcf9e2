// SPDX-License-Identifier: Apache-2.0
#include "agent/task/record.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>

#include "common/write_all.h"

namespace sekisho::agent::task {

std::string Encode(const Fields& fields) {
  std::string bytes;
  for (const auto& [key, value] : fields) {
    bytes += key;
    bytes += '=';
    bytes += value;
    bytes += '\0';
  }
  return bytes;
}

std::optional<Fields> Decode(std::string_view bytes) {
  Fields fields;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\0');
    const size_t equals = bytes.find('=');
    if (end == std::string_view::npos || equals >= end || equals == 0) {
      return std::nullopt;
    }
    fields.emplace_back(bytes.substr(0, equals), bytes.substr(equals + 1, end - equals - 1));
    bytes.remove_prefix(end + 1);
  }
  return fields;
}

std::string_view Get(const Fields& fields, std::string_view key) {
  for (const auto& [name, value] : fields) {
    if (name == key) {
      return value;
    }
  }
  return {};
}

std::optional<long long> GetNumber(const Fields& fields, std::string_view key) {
  const std::string_view text = Get(fields, key);
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

bool ReadFile(int dir_fd, const char* name, std::string& content) {
  const int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    return false;
  }
  content.clear();
  char buffer[4096];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
    content.append(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  }
  close(fd);
  return n == 0;
}

namespace {

// Under which a file is written before it has its name.
std::string TemporaryName(const char* name) { return "." + std::string(name) + ".new"; }

int OpenTemporary(int dir_fd, const std::string& name) {
  // Not emptied first: what was reserved would be anybody's.
  return openat(dir_fd, name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

bool SyncDirectory(int dir_fd) {
  const int dir = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool ok = dir >= 0 && fsync(dir) == 0;
  if (dir >= 0) {
    close(dir);
  }
  return ok;
}

}  // namespace

bool ReserveFile(int dir_fd, const char* name, size_t bytes) {
  const int fd = OpenTemporary(dir_fd, TemporaryName(name));
  const int error = fd < 0 ? errno : posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (fd >= 0) {
    close(fd);
  }
  errno = error;
  return error == 0;
}

bool WriteFile(int dir_fd, const char* name, std::string_view content, Durability durability) {
  const bool sync = durability == Durability::kMachine;
  const std::string temporary = TemporaryName(name);
  const int fd = OpenTemporary(dir_fd, temporary);
  if (fd < 0) {
    return false;
  }
  bool ok = WriteAll(fd, content) && ftruncate(fd, static_cast<off_t>(content.size())) == 0 &&
            (!sync || fdatasync(fd) == 0);
  ok = (close(fd) == 0) && ok;
  ok = ok && renameat(dir_fd, temporary.c_str(), dir_fd, name) == 0;
  ok = ok && (!sync || SyncDirectory(dir_fd));
  if (!ok) {
    const int error = errno;
    unlinkat(dir_fd, temporary.c_str(), 0);
    errno = error;
  }
  return ok;
}

bool SyncFile(int dir_fd, const char* name) {
  const int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  const bool ok = fd >= 0 && fdatasync(fd) == 0;
  if (fd >= 0) {
    const int error = errno;
    close(fd);
    errno = error;
  }
  return ok && SyncDirectory(dir_fd);
}

}  // namespace sekisho::agent::task
