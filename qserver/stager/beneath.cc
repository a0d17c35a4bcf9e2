// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace sekisho::qserver::stager {
namespace {

absl::Status Failed(const char* what, const Below& where, int error) {
  const std::string path = where.root + "/" + where.path;
  if (error == EXDEV || error == ELOOP) {
    return absl::PermissionDeniedError(fmt::format("cannot {} {}: it leads out of {}", what, path, where.root));
  }
  const std::string text = fmt::format("cannot {} {}: {}", what, path, std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(text) : absl::FailedPreconditionError(text);
}

int OpenBelow(int root, const std::string& path, int flags, unsigned mode) {
  open_how how{};
  how.flags = uint64_t(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return int(syscall(SYS_openat2, root, path.empty() ? "." : path.c_str(), &how, sizeof how));
}

absl::StatusOr<Fd> OpenRoot(const Below& where) {
  Fd root(open(where.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.is_open()) {
    return Failed("open", {where.root, ""}, errno);
  }
  return root;
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

absl::StatusOr<Fd> Open(const Below& where, int flags, unsigned mode) {
  ASSIGN_OR_RETURN(const Fd root, OpenRoot(where));
  Fd fd(OpenBelow(root.get(), where.path, flags, mode));
  if (!fd.is_open()) {
    return Failed("open", where, errno);
  }
  return fd;
}

absl::StatusOr<Parent> OpenParent(const Below& where, unsigned mode) {
  const std::vector<std::string_view> components = Components(where.path);
  if (components.empty()) {
    return absl::InvalidArgumentError(fmt::format("expected a file below {}, saw that directory", where.root));
  }
  ASSIGN_OR_RETURN(const Fd root, OpenRoot(where));
  Fd above(OpenBelow(root.get(), "", O_PATH | O_DIRECTORY, 0));
  for (size_t i = 0; i + 1 < components.size(); ++i) {
    // From the root each time: what the kernel has resolved below it stays below it, whoever moves what.
    const std::string path = Joined(components, 0, i + 1);
    Fd next(OpenBelow(root.get(), path, O_PATH | O_DIRECTORY, 0));
    if (!next.is_open() && errno == ENOENT) {
      const std::string name(components[i]);
      if (mkdirat(above.get(), name.c_str(), mode) != 0 && errno != EEXIST) {
        return Failed("make the directory", {where.root, path}, errno);
      }
      next = Fd(OpenBelow(root.get(), path, O_PATH | O_DIRECTORY, 0));
    }
    if (!next.is_open()) {
      return Failed("enter", {where.root, path}, errno);
    }
    above = std::move(next);
  }
  if (!above.is_open()) {
    return Failed("open", where, errno);
  }
  return Parent{std::move(above), std::string(components.back())};
}

bool Settle(const Parent& parent, const std::string& aside) {
  const int directory = parent.directory.get();
  if (renameat(directory, aside.c_str(), directory, parent.name.c_str()) != 0) {
    return false;
  }
  // Its owner may not be allowed to read it: then it is for the file system to say when.
  const Fd readable(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return !readable.is_open() || fsync(readable.get()) == 0;
}

}  // namespace sekisho::qserver::stager
