// SPDX-License-Identifier: Apache-2.0
#include "client/local/pm_daemon.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "client/local/pm_top.h"
#include "transport/pm/agent_door.h"
#include "transport/pm/errors.h"

namespace sekisho::client {
namespace {

constexpr int kAnswerMs = 5000;

std::string MeaningOf(pm::Ask ask, int error) {
  switch (error) {
    case ECONNREFUSED:
      return "no sekisho-pmd answers on this host: start it (systemctl start sekisho-pmd, or "
             "sekisho-pmd), or name its socket (--daemon, PM_DAEMON)";
    case ENOENT:
      return "no context of it is on this host, or it is over; sekisho pm list shows what is here";
    case EACCES:
      return "its key file must be yours, and nobody else may read it (chmod 600)";
    case EAGAIN:
      return "the process that keeps it does not answer; try again";
    case ECONNRESET:
      return "sekisho-pmd, or the process that keeps the context, ended meanwhile; try again";
    case ETIMEDOUT:
      return ask == pm::Ask::kStop ? "it did not stop in time, and goes on: sekisho pm top shows "
                                     "which node is silent; --timeout gives it longer"
                                   : "no answer in time";
    case EBUSY:
      return ask == pm::Ask::kStop || ask == pm::Ask::kGo
                 ? "somebody else is just stopping it or letting it go"
                 : "it is not stopped (sekisho pm stop), or its program lives";
    case EADDRINUSE:
      return "its address is taken on this host: --address names another";
    case EINVAL:
      return ask == pm::Ask::kRestore || ask == pm::Ask::kSave
                 ? "the file is no saved context of this job, or of another version"
                 : "sekisho-pmd is of another version";
    default:
      return std::strerror(error);
  }
}

}  // namespace

int PmFail(const std::string& what, int error) {
  fmt::print(stderr, "sekisho pm: {}: {}\n", what, std::strerror(error));
  return kPmFailed;
}

int PmRefused(const std::string& job, pm::Ask ask, int error) {
  fmt::print(stderr, "sekisho pm: {}{}{}\n", job, job.empty() ? "" : ": ", MeaningOf(ask, error));
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
    return errno == ENOENT ? ECONNREFUSED : errno;
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

int AskPmDaemonForAll(const std::string& socket, pm::AskMessage ask, std::span<const int> fds,
                      std::string& text) {
  text.clear();
  for (;;) {
    std::string page;
    if (const int error = AskPmDaemon(socket, ask, fds, page)) {
      return error;
    }
    const std::optional<std::uint16_t> next = TakeMore(page);
    text += page;
    if (!next || *next <= ask.first) {
      return 0;
    }
    ask.first = *next;
  }
}

std::vector<int> PmNodesHere(const std::string& socket, unsigned context, int node, int key,
                             int& error) {
  if (node >= 0) {
    return {node};
  }
  std::string text;
  std::vector<int> nodes;
  error = AskPmDaemonForAll(socket, {}, std::span(&key, 1), text);
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
    // Of a line the system says something only about the key file that it names.
    const bool is_key = line > 0 && error.category() == std::generic_category();
    const std::string why =
        error == pm::Error::kBadConfig && line > 0
            ? "expected a line of: key FILE (of 32 bytes), context 0-65535, channels 1-256, authenticate all|headers, "
              "nodes N, node N ADDRESS:PORT; each once, nodes before node"
        : error == pm::Error::kBadConfig ? "expected a key, the number of nodes and the address of each"
        : !is_key                        ? error.message()
        : error == std::errc::permission_denied
            ? "the key file must be yours, and nobody else may read it (chmod 600)"
            : "the key file: " + error.message();
    fmt::print(stderr, "sekisho pm: {}{}: {}\n", path, line > 0 ? fmt::format(":{}", line) : "",
               why);
  }
  return !error;
}

}  // namespace sekisho::client
