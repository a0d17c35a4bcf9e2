// SPDX-License-Identifier: Apache-2.0
#include "common/daemon.h"

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <CLI/CLI.hpp>
#include <asio/signal_set.hpp>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/refusal.h"

namespace sekisho {
namespace {

void Notify(const char* text) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || std::strlen(path) >= sizeof(address.sun_path)) {
    return;
  }
  std::strcpy(address.sun_path, path);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  if (address.sun_path[0] == '@') {
    address.sun_path[0] = '\0';  // abstract
  }
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    sendto(fd, text, std::strlen(text), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), length);
    close(fd);
  }
}

}  // namespace

void AddDaemonOptions(CLI::App& app, const std::string& name, DaemonCommand& command) {
  command.config_path = "/etc/sekisho/" + name + ".json";
  app.add_option("--config", command.config_path, "Configuration file")->capture_default_str();
  app.add_flag("--check", command.check, "Check the configuration and exit");
  app.set_version_flag("--version", "sekisho-" + name + " " + kVersion);
}

std::optional<int> ReadCommandLine(CLI::App& app, int argc, char** argv) {
  constexpr int kUsage = 64;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return std::nullopt;
}

int ReportStart(const absl::Status& status) {
  if (status.ok()) {
    return 0;
  }
  std::fprintf(stderr, "%s\n", Message(status).c_str());
  if (const std::string remedy = Remedy(status); !remedy.empty()) {
    std::fprintf(stderr, "  -> %s\n", remedy.c_str());
  }
  return 1;
}

void NotifyReady() { Notify("READY=1"); }
void NotifyStopping() { Notify("STOPPING=1"); }

awaitable<void> WaitForStop(Loop& loop, std::function<void()> reload) {
  std::signal(SIGPIPE, SIG_IGN);
  asio::signal_set signals(loop, SIGTERM, SIGINT, SIGHUP);
  for (;;) {
    const auto [error, signal] = co_await signals.async_wait(kAsTuple);
    if (!error && signal == SIGHUP) {
      if (reload) {
        reload();
      }
      continue;
    }
    NotifyStopping();
    co_return;
  }
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

void GiveMemoryBack() {
  // glibc would raise it to the size of what was freed.  Pieces of files, of 256 KiB, stay below: a fresh mapping for
  // each would cost more than its bytes do.
  mallopt(M_MMAP_THRESHOLD, 512 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  mallopt(M_ARENA_MAX, 2);
}

}  // namespace sekisho
