// SPDX-License-Identifier: Apache-2.0
// libnxproxy-preload.so: libc's socket calls, by way of the shim: docs/protocol/11-nxproxy-shim.md.
#include <cerrno>

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nxproxy/client/shim.h"

namespace sekisho::nxproxy::client {
namespace {

// The one global of the preloaded library: libc's names have no other place to keep it.
constinit Shim shim;

template <typename Function>
void Find(Function& out, const char* name) {
  out = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// Runs before main and before the constructors of the program's own libraries may call us.
Shim& Ready() {
  if (shim.calls.listen == nullptr) {
    Calls calls{};
    Find(calls.accept4, "accept4");
    Find(calls.connect, "connect");
    Find(calls.getsockname, "getsockname");
    Find(calls.getpeername, "getpeername");
    Find(calls.listen, "listen");
    shim.calls = calls;
    const int saved = errno;
    shim.ReadEnvironment();
    errno = saved;
  }
  return shim;
}

__attribute__((constructor)) void OnLoad() { Ready(); }

}  // namespace
}  // namespace sekisho::nxproxy::client

using sekisho::nxproxy::client::Ready;

#define NXPROXY_HOOK extern "C" __attribute__((visibility("default")))

// For a porter that was started under another command's shim.
NXPROXY_HOOK void nxproxy_preload_leave() { Ready().is_active = false; }

NXPROXY_HOOK int listen(int fd, int backlog) noexcept { return Ready().Listen(fd, backlog); }

NXPROXY_HOOK int accept(int fd, sockaddr* address, socklen_t* length) {
  return Ready().Accept(fd, address, length, 0);
}

NXPROXY_HOOK int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  return Ready().Accept(fd, address, length, flags);
}

NXPROXY_HOOK int connect(int fd, const sockaddr* address, socklen_t length) {
  return Ready().Connect(fd, address, length);
}

NXPROXY_HOOK int getsockname(int fd, sockaddr* address, socklen_t* length) noexcept {
  return Ready().Getsockname(fd, address, length);
}

NXPROXY_HOOK int getpeername(int fd, sockaddr* address, socklen_t* length) noexcept {
  return Ready().Getpeername(fd, address, length);
}
