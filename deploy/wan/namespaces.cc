// SPDX-License-Identifier: Apache-2.0
// See namespaces.h.
#include "deploy/wan/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace sekisho::wan {
namespace {

constexpr char kFolder[] = "/run/netns";
constexpr char kOwn[] = "/proc/self/ns/net";

void Remove(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    umount2(path.c_str(), MNT_DETACH);
    unlink(path.c_str());
  }
}

// The name in the abstract space is free as soon as nobody holds the socket.
int TakeName(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t length = name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address),
                      offsetof(sockaddr_un, sun_path) + 1 + length) == 0) {
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

[[noreturn]] void Guard(int alive, const std::vector<std::string>& paths) {
  setsid();
  prctl(PR_SET_PDEATHSIG, 0);
  prctl(PR_SET_NAME, "lab-wan-guard");
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  close_range(0, alive - 1, 0);
  close_range(alive + 1, ~0u, 0);
  char byte;
  while (read(alive, &byte, 1) < 0 && errno == EINTR) {
  }
  Remove(paths);
  _exit(0);
}

}  // namespace

Namespaces::Namespaces(const std::string& prefix, const std::vector<std::string>& names)
    : prefix_(prefix) {
  for (const std::string& name : names)
    paths_.push_back(std::string(kFolder) + "/" + prefix + name);
}

Namespaces::~Namespaces() {
  if (alive_ >= 0) close(alive_);
  if (guard_ > 0) waitpid(guard_, nullptr, 0);
  if (lock_ >= 0) close(lock_);
  if (home_ >= 0) close(home_);
}

bool Namespaces::Begin(std::string& error) {
  home_ = open(kOwn, O_RDONLY | O_CLOEXEC);
  if (paths_.empty()) return true;
  lock_ = TakeName("sekisho-lab-wan/" + prefix_);
  if (lock_ < 0) {
    error = "the prefix '" + prefix_ + "' is in use by another emulator";
    return false;
  }
  mkdir(kFolder, 0755);
  Remove(paths_);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0 || (guard_ = fork()) < 0) {
    error = std::string("guard: ") + strerror(errno);
    return false;
  }
  if (guard_ == 0) Guard(ends[0], paths_);
  close(ends[0]);
  alive_ = ends[1];
  return true;
}

bool Namespaces::Make(size_t i, std::string& error) {
  const char* path = paths_[i].c_str();
  const int file = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  if (file >= 0) close(file);
  if (file < 0 || unshare(CLONE_NEWNET) < 0 || mount(kOwn, path, "none", MS_BIND, nullptr) < 0) {
    error = paths_[i] + ": " + strerror(errno);
    return false;
  }
  return true;
}

bool Namespaces::Enter(const std::string& path, std::string& error) {
  const int fd = path.empty() ? home_ : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool is_in = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
  if (!is_in) error = "namespace " + path + ": " + strerror(errno);
  if (fd >= 0 && fd != home_) close(fd);
  return is_in;
}

}  // namespace sekisho::wan
