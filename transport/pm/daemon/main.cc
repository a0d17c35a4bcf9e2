// SPDX-License-Identifier: Apache-2.0
// sekisho-pmd: owns PM contexts, so that they outlive a busy, stopped or dead program.
// docs/operations/pm.md, docs/protocol/9-pm.md.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fcntl.h>

#include <array>
#include <vector>

#include "transport/pm/daemon/registry.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

constexpr std::size_t kClientsMax = 64;  // that have not said yet what they want
constexpr Nanos kPatience = 5 * kSecond;

// One daemon for a path: the lock goes with the process, the socket's name is left behind.
int Listen(const std::string& path) {
  const int lock = open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() + 1 >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  const std::string fresh = path + "~";  // it has its name when it can be connected to
  memcpy(address.sun_path, fresh.c_str(), fresh.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  (void)unlink(fresh.c_str());
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(fresh.c_str(), 0666) != 0 || listen(fd, 128) != 0 ||
      rename(fresh.c_str(), path.c_str()) != 0) {
    return -1;
  }
  return fd;
}

void Accept(int listener, std::vector<Client>& clients) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  ucred who{};
  socklen_t size = sizeof who;
  if (clients.size() >= kClientsMax || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    close(fd);
    return;
  }
  clients.push_back({fd, who.uid, who.pid, Wire::Now()});
}

// Each context takes some descriptors, and the usual limit is 1,024.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int Serve(const std::string& path) {
  const int listener = Listen(path);
  if (listener < 0) {
    fprintf(stderr, "sekisho-pmd: %s: %s\n", path.c_str(), strerror(errno));
    return 1;
  }
  // A batch system sends them to all processes of a job, for the programs.  Keepers are born with
  // it.
  for (const int of_programs : {SIGUSR1, SIGUSR2}) signal(of_programs, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const int events = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  Registry registry(path);
  std::vector<Client> clients;
  std::vector<pollfd> fds;
  fprintf(stderr, "sekisho-pmd: listening path=%s\n", path.c_str());
  for (;;) {
    fds = {{events, POLLIN, 0}, {listener, POLLIN, 0}};
    for (const Client& client : clients) fds.push_back({client.fd, POLLIN, 0});
    (void)poll(fds.data(), fds.size(), clients.empty() ? -1 : 1000);

    signalfd_siginfo info;
    while (read(events, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGCHLD) return 0;  // the keepers go on, and find the next of us
    }
    registry.Reap();
    std::vector<Client> left;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const Client& client = clients[i];
      if (fds[i + 2].revents == 0) {
        if (Wire::Now() - client.since < kPatience) {
          left.push_back(client);
        } else {
          close(client.fd);
        }
        continue;
      }
      AskMessage ask;
      Received received = ReceiveMessage(client.fd, RoomFor(ask));
      if (received.size == sizeof ask) {
        registry.OnMessage(client, ask, received);
      } else {
        for (std::size_t f = 0; f < received.fd_count; ++f) close(received.fds[f]);
        close(client.fd);
      }
    }
    clients.swap(left);
    if (fds[1].revents != 0) Accept(listener, clients);
  }
}

int Main(int argc, char** argv) {
  const char* given = nullptr;
  if (argc == 3 && strcmp(argv[1], "--socket") == 0) {
    given = argv[2];
  } else if (argc != 1) {
    const bool is_asked = argc == 2 && strcmp(argv[1], "--help") == 0;
    fprintf(is_asked ? stdout : stderr,
            "usage: sekisho-pmd [--socket PATH]   (default: $PM_DAEMON, else "
            "$XDG_RUNTIME_DIR/sekisho-pmd,\n"
            "                                    else /run/sekisho-pmd/pmd)\n"
            "Makes the contexts of this host's programs that use PM, and acts for them.  Manual: "
            "docs/operations/pm.md\n");
    return is_asked ? 0 : 64;
  }
  std::array<char, 108> path;
  if (!DaemonPath(given, path)) {
    fprintf(stderr, "sekisho-pmd: the path of the socket is too long\n");
    return 64;
  }
  RaiseDescriptorLimit();
  return Serve(path.data());
}

}  // namespace
}  // namespace sekisho::pm

int main(int argc, char** argv) { return sekisho::pm::Main(argc, argv); }
