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

namespace sekisho::pm {
namespace {

constexpr int kAnswerMs = 20'000;  // it starts a process

// Sends `question`, and reads until the end of the line that comes.  0 or errno.
int Ask(int door, const char* question, std::size_t size, std::array<char, 108>& line) {
  std::array<char, 64> text;
  if (size + 1 > text.size()) return EINVAL;
  memcpy(text.data(), question, size);
  text[size] = '\n';
  if (send(door, text.data(), size + 1, MSG_NOSIGNAL) < 0) return errno;
  for (std::size_t got = 0;;) {
    pollfd waiting = {door, POLLIN, 0};
    if (poll(&waiting, 1, kAnswerMs) <= 0) return ETIMEDOUT;
    const ssize_t count = recv(door, line.data() + got, line.size() - got, 0);
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

}  // namespace

int AskAgent(const char* agent, std::array<char, 108>& daemon) {
  const char* colon = strchr(agent, ':');
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (colon == nullptr || strlen(colon + 1) >= sizeof address.sun_path) return EINVAL;
  strcpy(address.sun_path, colon + 1);
  const int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (door < 0) return errno;
  int error = connect(door, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0
                  ? Ask(door, agent, static_cast<std::size_t>(colon - agent), daemon)
                  : errno;
  close(door);
  if (error == 0 && daemon[0] != '/') {
    error = daemon[0] == '-' ? 0 : ECONNREFUSED;
    daemon[0] = 0;
  }
  return error;
}

}  // namespace sekisho::pm
