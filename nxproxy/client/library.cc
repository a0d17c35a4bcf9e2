// SPDX-License-Identifier: Apache-2.0
// libnxproxy: the shim under names of its own (nxproxy.h), and a porter started when it is first
// needed.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nxproxy/client/nxproxy.h"
#include "nxproxy/client/shim.h"

namespace sekisho::nxproxy::client {
namespace {

// Guards the start of the porter; atfork hands it to the child in order.
pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
constinit Shim shared;  // written under `starting`
bool is_prepared = false;

void Lock() { pthread_mutex_lock(&starting); }
void Unlock() { pthread_mutex_unlock(&starting); }

// $NXPROXY_PORTER_PROGRAM; beside the library (build folder); where it is installed.
std::string PorterProgram() {
  if (const char* named = getenv("NXPROXY_PORTER_PROGRAM"); named != nullptr) {
    return named;
  }
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&PorterProgram), &info) != 0 && info.dli_fname != nullptr) {
    const std::string library = info.dli_fname;
    const std::string beside = library.substr(0, library.rfind('/') + 1) + "sekisho-nxporter";
    if (access(beside.c_str(), X_OK) == 0) {
      return beside;
    }
  }
  return SEKISHO_LIBEXECDIR "/sekisho-nxporter";
}

// The value of $NXPROXY_PORTER; "" if the porter could not serve, after it said why on stderr.
std::string StartPorter() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return "";
  }
  const std::string program = PorterProgram();
  const std::string pid = std::to_string(getpid());
  char verb[] = "serve";
  char* const arguments[] = {const_cast<char*>(program.c_str()), verb,
                             const_cast<char*>(pid.c_str()), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  pid_t child = -1;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char buffer[256];
  ssize_t got = 0;
  while (error == 0 &&
         ((got = read(ends[0], buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR))) {
    text.append(buffer, got > 0 ? static_cast<size_t>(got) : 0);
  }
  close(ends[0]);
  while (error == 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  errno = error != 0 ? error : errno;
  return text.substr(0, text.find('\n'));
}

bool DoesAnswer(const LocalPlace& place) {
  LocalRequest request;
  LocalReply reply;
  int unused;
  request.verb = LocalVerb::kName;
  return Ask(place, request, reply, unused) && reply.answer != LocalAnswer::kRefused;
}

// A copy for this call: threads share nothing that is written.
Shim Ready() {
  Lock();
  if (!is_prepared) {
    is_prepared = true;
    pthread_atfork(Lock, Unlock, Unlock);
    shared.calls = {listen, accept4, connect, getsockname, getpeername};
    shared.asks_always = true;
    shared.ReadEnvironment();
  }
  if (!shared.is_active || !DoesAnswer(shared.place)) {
    const int saved = errno;
    shared.is_active = ParsePlace(StartPorter().c_str(), shared.place);
    errno = saved;
  }
  const Shim copy = shared;
  Unlock();
  return copy;
}

}  // namespace
}  // namespace sekisho::nxproxy::client

using namespace sekisho::nxproxy::client;

#define NXPROXY_API extern "C" __attribute__((visibility("default")))

NXPROXY_API int NxProxyBindAs(int fd, const sockaddr* address, socklen_t length, int scope,
                              int port) {
  if ((scope != NXPROXY_SCOPE_JOB && scope != NXPROXY_SCOPE_PUBLIC) || port < 0 || port > 65535) {
    errno = EINVAL;
    return -1;
  }
  if (bind(fd, address, length) != 0) {
    return -1;
  }
  const uint32_t flags = scope == NXPROXY_SCOPE_PUBLIC ? kIsExplicit | kIsPublic : kIsExplicit;
  return Ready().Reserve(fd, flags, static_cast<uint16_t>(port));
}

NXPROXY_API int NxProxyBind(int fd, const sockaddr* address, socklen_t length) {
  const char* scope = getenv("NXPROXY_SCOPE");
  const bool is_public = scope != nullptr && std::strcmp(scope, "public") == 0;
  return NxProxyBindAs(fd, address, length, is_public ? NXPROXY_SCOPE_PUBLIC : NXPROXY_SCOPE_JOB,
                       0);
}

NXPROXY_API int NxProxyListen(int fd, int backlog) { return Ready().Listen(fd, backlog); }

NXPROXY_API int NxProxyAccept(int fd, sockaddr* address, socklen_t* length, int flags) {
  return Ready().Accept(fd, address, length, flags);
}

NXPROXY_API int NxProxyConnect(int fd, const sockaddr* address, socklen_t length) {
  return Ready().Connect(fd, address, length);
}

NXPROXY_API int NxProxyGetsockname(int fd, sockaddr* address, socklen_t* length) {
  Shim shim = Ready();
  return shim.PublicName(fd, address, length) == 0 ? 0 : shim.Getsockname(fd, address, length);
}

NXPROXY_API int NxProxyGetpeername(int fd, sockaddr* address, socklen_t* length) {
  return Ready().Getpeername(fd, address, length);
}

NXPROXY_API int NxProxyClose(int fd) { return close(fd); }

NXPROXY_API const char* nxproxy_strerror(int error) {
  const char* text = LastRefusal(error);
  return text != nullptr ? text : strerror(error);
}
