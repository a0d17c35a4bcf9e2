// SPDX-License-Identifier: Apache-2.0
#include "client/local/pm_daemon.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "transport/pm/agent_door.h"

namespace sekisho::client {
namespace {

constexpr int kAnswerMs = 5000;

}  // namespace

int PmFail(const std::string& what, int error) {
  fmt::print(stderr, "sekisho pm: {}: {}\n", what, std::strerror(error));
  return kPmFailed;
}

// A connection for each question: the daemon answers one.
int AskPmDaemon(const std::string& socket, const pm::AskMessage& ask, std::span<const int> fds,
                std::string& text, int* descriptor) {
  std::array<char, 108> path{};
  const char* agent = std::getenv("PM_AGENT");
  const bool is_named = !socket.empty() || std::getenv("PM_DAEMON") != nullptr;
  if (const int error = is_named || agent == nullptr ? 0 : pm::AskAgent(agent, path)) {
    return error;
  }
  if (path[0] == 0 && !pm::DaemonPath(socket.empty() ? nullptr : socket.c_str(), path)) {
    return ENAMETOOLONG;
  }
  const int daemon = pm::ConnectDaemon(path.data());
  if (daemon < 0) {
    return errno;
  }
  pm::AnswerMessage answer;
  pm::Received received;
  const int error = pm::AskDaemon(daemon, ask, fds, kAnswerMs + static_cast<int>(ask.timeout_ms),
                                  answer, received);
  close(daemon);
  if (descriptor != nullptr) {
    *descriptor = std::exchange(received.fds[0], -1);
  }
  for (const int fd : received.fds) {
    if (fd >= 0) {
      close(fd);
    }
  }
  if (error == 0) {
    text.assign(answer.text.data(), std::min<std::size_t>(answer.length, answer.text.size()));
  }
  return error;
}

std::vector<int> PmNodesHere(const std::string& socket, unsigned context, int node, int& error) {
  if (node >= 0) {
    return {node};
  }
  std::string text;
  std::vector<int> nodes;
  error = AskPmDaemon(socket, {}, {}, text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    unsigned number = 0;
    int found = 0;
    if (std::sscanf(text.c_str() + at, "context %u node %d", &number, &found) == 2 &&
        number == context) {
      nodes.push_back(found);
    }
    at = end + 1;
  }
  return nodes;
}

bool ReadPmJob(const std::string& path, pm::JobFile& job) {
  int line = 0;
  const std::error_code error = pm::ReadJobFile(path.c_str(), job, line);
  if (error) {
    fmt::print(stderr, "sekisho pm: {}{}: {}\n", path, line > 0 ? fmt::format(":{}", line) : "",
               error.message());
  }
  return !error;
}

}  // namespace sekisho::client
