// SPDX-License-Identifier: Apache-2.0
// sekisho-stager: files of one account, for the queue server, which starts it as that account.  It does what comes
// by the socket on its standard input, and ends with it.  docs/protocol/17-staging.md.
#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "qserver/stager/desk.h"

namespace sekisho::qserver::stager {
namespace {

constexpr size_t kMessageMost = 4 << 20;
constexpr rlim_t kMemoryMost = 256 << 20;

bool ReadExactly(char* data, size_t size) {
  while (size > 0) {
    const ssize_t got = read(STDIN_FILENO, data, size);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    data += got;
    size -= size_t(got);
  }
  return true;
}

bool Send(const StagerReply& reply) {
  const std::string body = reply.SerializeAsString();
  const uint32_t size = htonl(uint32_t(body.size()));
  const std::string message = std::string(reinterpret_cast<const char*>(&size), sizeof size) + body;
  return WriteAll(STDIN_FILENO, message, "the answer").ok();
}

int Run() {
  Desk desk;
  std::string body;
  for (;;) {
    uint32_t size = 0;
    if (!ReadExactly(reinterpret_cast<char*>(&size), sizeof size)) {
      return 0;
    }
    size = ntohl(size);
    if (size > kMessageMost) {
      return 1;
    }
    body.resize(size);
    StagerOrder order;
    if (!ReadExactly(body.data(), size) || !order.ParseFromString(body)) {
      return 1;
    }
    if (const auto reply = desk.Do(order); reply && !Send(*reply)) {
      return 0;
    }
  }
}

}  // namespace
}  // namespace sekisho::qserver::stager

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  umask(0);  // modes are as asked
  prctl(PR_SET_DUMPABLE, 0);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose own memory is beyond every limit
  const rlimit memory{sekisho::qserver::stager::kMemoryMost, sekisho::qserver::stager::kMemoryMost};
  setrlimit(RLIMIT_DATA, &memory);
#endif
  return sekisho::qserver::stager::Run();
}
