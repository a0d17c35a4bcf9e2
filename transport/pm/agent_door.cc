// SPDX-License-Identifier: Apache-2.0
// A line to the agent, a line back.
#include "transport/pm/agent_door.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>

#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

constexpr Nanos kAnswerWithin = 20 * kSecond;  // it starts a process
constexpr Nanos kRestartWithin = 5 * kSecond;  // while the agent is started anew nobody listens
constexpr int kTryAgainMs = 50;

// Until `deadline` something can be done with `door`.
bool Await(int door, short what, Nanos deadline) {
  for (;;) {
    const Nanos left = deadline - Wire::Now();
    if (left <= 0) return false;
    pollfd waiting = {door, what, 0};
    const int found = poll(&waiting, 1, static_cast<int>(left / kMillisecond) + 1);
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
}

// Sends `question`, and reads until the end of the line that comes.  0 or errno.
int Ask(int door, const char* question, std::size_t size, Nanos deadline,
        std::array<char, 108>& line) {
  std::array<char, 64> text;
  if (size + 1 > text.size()) return EINVAL;
  memcpy(text.data(), question, size);
  text[size] = '\n';
  // So little fits at once.
  while (send(door, text.data(), size + 1, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return errno;
  }
  for (std::size_t got = 0;;) {
    if (!Await(door, POLLIN, deadline)) return ETIMEDOUT;
    const ssize_t count = recv(door, line.data() + got, line.size() - got, 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return ECONNREFUSED;
    got += static_cast<std::size_t>(count);
    char* end = static_cast<char*>(memchr(line.data(), '\n', got));
    if (end != nullptr) {
      *end = 0;
      return 0;
    }
    if (got == line.size()) return ENAMETOOLONG;
  }
}

// 0 or errno.  An agent that has too many at its door (EAGAIN) is waited for as long as for its
// answer.
int Connect(int door, const sockaddr_un& address, Nanos begin) {
  for (;;) {
    if (connect(door, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
    const int error = errno;
    const bool is_gone = error == ENOENT || error == ECONNREFUSED;
    if (!is_gone && error != EAGAIN && error != EINTR) return error;
    if (Wire::Now() - begin >= (is_gone ? kRestartWithin : kAnswerWithin)) {
      return is_gone ? error : ETIMEDOUT;
    }
    (void)poll(nullptr, 0, kTryAgainMs);
  }
}

}  // namespace

int AskAgent(const char* agent, std::array<char, 108>& daemon) {
  const char* colon = strchr(agent, ':');
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (colon == nullptr || strlen(colon + 1) >= sizeof address.sun_path) return EINVAL;
  strcpy(address.sun_path, colon + 1);
  const int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (door < 0) return errno;
  const Nanos begin = Wire::Now();
  int error = Connect(door, address, begin);
  if (error == 0) {
    error =
        Ask(door, agent, static_cast<std::size_t>(colon - agent), begin + kAnswerWithin, daemon);
  }
  close(door);
  if (error == 0 && daemon[0] != '/') {
    error = daemon[0] == '-' ? 0 : ECONNREFUSED;
    daemon[0] = 0;
  }
  return error;
}

}  // namespace sekisho::pm
