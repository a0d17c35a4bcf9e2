// SPDX-License-Identifier: Apache-2.0
// Files below a few directories, and nowhere else: docs/protocol/17-staging.md, "Paths".
#pragma once

#include <string>

#include "common/status.h"
#include "qserver/stager/below.h"

namespace sekisho::qserver::stager {

// A descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd();
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Opens with openat2: neither ".." nor a link, whoever made it and when, leads out of the root.  NotFound: it is not
// there.
absl::StatusOr<Fd> Open(const Below& where, int flags, unsigned mode = 0);

// The directory that `where` is in, which is made with what is missing above it, and its name there.
struct Parent {
  Fd directory;
  std::string name;
};
absl::StatusOr<Parent> OpenParent(const Below& where, unsigned mode);

// What `aside` is called in the directory gets its own name, and keeps it over a power cut.  False: errno.
bool Settle(const Parent& parent, const std::string& aside);

}  // namespace sekisho::qserver::stager
