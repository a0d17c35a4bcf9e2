// SPDX-License-Identifier: Apache-2.0
// The file that names the nodes of a job.
#include "transport/pm/job_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>

#include "transport/pm/device.h"
#include "transport/pm/errors.h"
#include "transport/pm/number.h"

namespace sekisho::pm {
namespace {

constexpr unsigned long kNodesMax = 65535;

struct Closer {
  void operator()(FILE* file) const { fclose(file); }
};

// Each has one value, and stands in a file once: of two, nobody knows which was meant.
constexpr std::array kOnce = {"key", "context", "channels", "authenticate", "nodes"};

bool IsSaidWell(const char* word, const char* second, std::array<bool, kOnce.size()>& said) {
  for (std::size_t i = 0; i < kOnce.size(); ++i) {
    if (strcmp(word, kOnce[i]) != 0) continue;
    if (said[i] || second != nullptr) return false;
    said[i] = true;
  }
  return true;
}

// One line: a word and its values.
std::error_code Take(const char* word, const char* first, const char* second, JobFile& job) {
  unsigned long value;
  if (strcmp(word, "key") == 0 && first != nullptr) {
    job.key_path.reset(new (std::nothrow) char[strlen(first) + 1]);
    if (!job.key_path) return Error::kNoMemory;
    strcpy(job.key_path.get(), first);
    return ReadKeyFile(first, job.key);
  }
  if (strcmp(word, "context") == 0 && ReadNumber(first, 0, 65535, value)) {
    job.context = static_cast<std::uint16_t>(value);
    return {};
  }
  if (strcmp(word, "channels") == 0 && ReadNumber(first, 1, 256, value)) {
    job.channels = static_cast<std::uint16_t>(value);
    return {};
  }
  if (strcmp(word, "authenticate") == 0 && first != nullptr) {
    job.payload_tag = strcmp(first, "headers") != 0;
    return job.payload_tag && strcmp(first, "all") != 0 ? Error::kBadConfig : std::error_code();
  }
  if (strcmp(word, "nodes") == 0 && ReadNumber(first, 1, kNodesMax, value)) {
    job.nodes = static_cast<std::uint16_t>(value);
    job.addresses.reset(new (std::nothrow) Address[value]);
    return job.addresses ? std::error_code() : Error::kNoMemory;
  }
  if (strcmp(word, "node") == 0 && ReadNumber(first, 0, kNodesMax, value) && value < job.nodes &&
      second != nullptr && job.addresses[value].port == 0) {
    return ParseAddress(second, job.addresses[value]);
  }
  return Error::kBadConfig;
}

std::error_code LastError() { return {errno, std::generic_category()}; }

// A new file: nobody who has an older one open reads it, and no link is followed.
int OpenAnew(const char* path) {
  if (unlink(path) != 0 && errno != ENOENT) return -1;
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

// In a line of words a name with a blank is two; and who reads it may be in another folder.
bool IsPathForAFile(const char* path) {
  return path[0] == '/' && strlen(path) + sizeof ".key" <= PATH_MAX &&
         strpbrk(path, " \t\r\n#") == nullptr;
}

using Path = std::array<char, PATH_MAX>;

Path Beside(const char* path, const char* end) {
  Path name;
  snprintf(name.data(), name.size(), "%s%s", path, end);
  return name;
}

}  // namespace

std::error_code ReadKeyFile(const char* path, JobKey& key) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {errno, std::generic_category()};
  const auto error = ReadKeyFile(fd, geteuid(), key);
  close(fd);
  return error;
}

std::error_code ReadKeyFile(int fd, uid_t owner, JobKey& key) {
  struct stat status;
  const bool ours = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == owner &&
                    (status.st_mode & 077) == 0;
  std::array<std::uint8_t, 33> bytes;
  const ssize_t size = ours ? pread(fd, bytes.data(), bytes.size(), 0) : -1;
  if (!ours) return std::make_error_code(std::errc::permission_denied);
  if (size != 32) return Error::kBadConfig;
  memcpy(key.data(), bytes.data(), key.size());
  return {};
}

AddressText FormatAddress(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> ip;
  AddressText text;
  if (IsMapped(address)) {
    inet_ntop(AF_INET, address.ip.data() + 12, ip.data(), ip.size());
    snprintf(text.data(), text.size(), "%s:%u", ip.data(), address.port);
  } else {
    inet_ntop(AF_INET6, address.ip.data(), ip.data(), ip.size());
    snprintf(text.data(), text.size(), "[%s]:%u", ip.data(), address.port);
  }
  return text;
}

std::error_code WriteJobKey(const char* path, const JobKey& key) {
  if (!IsPathForAFile(path)) return Error::kBadConfig;
  const Path name = Beside(path, ".key");
  struct stat status;
  const bool is_there = lstat(name.data(), &status) == 0;
  const bool is_key = is_there && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
                      status.st_size == static_cast<off_t>(key.size());
  if (is_there && !is_key) return std::make_error_code(std::errc::file_exists);
  const int fd = OpenAnew(name.data());
  if (fd < 0) return LastError();
  const ssize_t size = write(fd, key.data(), key.size());
  const auto error = size < 0 ? LastError() : std::make_error_code(std::errc::io_error);
  close(fd);
  if (size == static_cast<ssize_t>(key.size())) return {};
  unlink(name.data());
  return error;
}

std::error_code WriteJobFile(const char* path, const JobFile& job) {
  if (!IsPathForAFile(path)) return Error::kBadConfig;
  const Path whole = Beside(path, ".new"), key = Beside(path, ".key");
  const int fd = OpenAnew(whole.data());
  if (fd < 0) return LastError();
  const std::unique_ptr<FILE, Closer> file(fdopen(fd, "w"));
  if (!file) {
    close(fd);
    return Error::kNoMemory;
  }
  fprintf(file.get(), "key %s\ncontext %u\nchannels %u\n%snodes %u\n", key.data(), job.context,
          job.channels, job.payload_tag ? "" : "authenticate headers\n", job.nodes);
  for (std::uint16_t node = 0; node < job.nodes; ++node) {
    fprintf(file.get(), "node %u %s\n", node, FormatAddress(job.addresses[node]).data());
  }
  if (fflush(file.get()) == 0 && rename(whole.data(), path) == 0) return {};
  const auto error = LastError();
  unlink(whole.data());
  return error;
}

std::error_code ReadJobFile(const char* path, JobFile& job, int& line) {
  line = 0;
  const std::unique_ptr<FILE, Closer> file(fopen(path, "re"));
  if (!file) return {errno, std::generic_category()};
  std::array<char, 4200> text;
  std::array<bool, kOnce.size()> said{};
  while (fgets(text.data(), text.size(), file.get()) != nullptr) {
    ++line;
    if (strchr(text.data(), '\n') == nullptr && feof(file.get()) == 0) return Error::kBadConfig;
    if (char* comment = strchr(text.data(), '#')) *comment = 0;
    char* rest = nullptr;
    const char* word = strtok_r(text.data(), " \t\r\n", &rest);
    if (word == nullptr) continue;
    const char* first = strtok_r(nullptr, " \t\r\n", &rest);
    const char* second = strtok_r(nullptr, " \t\r\n", &rest);
    if (strtok_r(nullptr, " \t\r\n", &rest) != nullptr) return Error::kBadConfig;
    if (!IsSaidWell(word, second, said)) return Error::kBadConfig;
    if (const auto error = Take(word, first, second, job)) return error;
  }
  line = 0;
  if (!said.front() || job.nodes == 0) return Error::kBadConfig;
  for (std::uint16_t node = 0; node < job.nodes; ++node) {
    if (job.addresses[node].port == 0) return Error::kBadConfig;
  }
  return {};
}

}  // namespace sekisho::pm
