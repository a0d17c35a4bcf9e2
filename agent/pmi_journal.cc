// SPDX-License-Identifier: Apache-2.0
#include "agent/pmi_journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "common/write_all.h"

namespace sekisho::agent {
namespace {

constexpr size_t kSizeMost = 16 << 20;  // a world's start and end take a few collectives of 3 MiB at most

template <typename Integer>
bool TakeNumber(std::string_view& bytes, Integer& number, char end) {
  const auto [rest, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), number);
  const auto taken = static_cast<size_t>(rest - bytes.data());
  if (error != std::errc() || taken == bytes.size() || *rest != end) {
    return false;
  }
  bytes.remove_prefix(taken + 1);
  return true;
}

bool ReadAll(int fd, std::string& bytes) {
  char buffer[64 << 10];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
    bytes.append(buffer, static_cast<size_t>(n > 0 ? n : 0));
  }
  return n == 0;
}

}  // namespace

// KIND RANK NUMBER SIZE, a line, then so many bytes and the line's end.
std::string EncodePmiEntry(const PmiEntry& entry) {
  return fmt::format("{} {} {} {}\n{}\n", static_cast<char>(entry.kind), entry.rank, entry.number, entry.data.size(),
                     entry.data);
}

bool TakePmiEntry(std::string_view& bytes, PmiEntry& entry) {
  std::string_view rest = bytes;
  size_t size = 0;
  if (rest.size() < 2 || std::string_view("rtlf").find(rest[0]) == std::string_view::npos || rest[1] != ' ') {
    return false;
  }
  entry.kind = static_cast<PmiEntry::Kind>(rest[0]);
  rest.remove_prefix(2);
  if (!TakeNumber(rest, entry.rank, ' ') || !TakeNumber(rest, entry.number, ' ') || !TakeNumber(rest, size, '\n') ||
      size >= rest.size() || rest[size] != '\n') {
    return false;
  }
  entry.data = rest.substr(0, size);
  bytes = rest.substr(size + 1);
  return true;
}

bool PmiJournal::Open(const std::string& path, std::vector<PmiEntry>& entries) {
  Close();
  path_ = path;
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  std::string bytes;
  if (fd_ < 0 || !ReadAll(fd_, bytes)) {
    Close();
    return false;
  }
  std::string_view rest = bytes;
  for (PmiEntry entry; TakePmiEntry(rest, entry);) {
    entries.push_back(std::move(entry));
  }
  size_ = bytes.size() - rest.size();
  if (ftruncate(fd_, static_cast<off_t>(size_)) != 0) {
    Close();
  }
  return is_open();
}

bool PmiJournal::Append(const PmiEntry& entry) {
  const std::string bytes = EncodePmiEntry(entry);
  errno = EFBIG;
  if (size_ + bytes.size() <= kSizeMost && WriteAll(fd_, bytes)) {
    size_ += bytes.size();
    return true;
  }
  const int error = errno;
  Remove();
  errno = error;
  return false;
}

void PmiJournal::Remove() {
  if (!path_.empty()) {
    unlink(path_.c_str());
  }
  Close();
}

void PmiJournal::Close() {
  if (fd_ >= 0) {
    close(std::exchange(fd_, -1));
  }
}

}  // namespace sekisho::agent
