// SPDX-License-Identifier: Apache-2.0
// What every daemon's main() begins and ends with: --config, --check, --version; readiness told to the
// service manager; an orderly stop on SIGTERM and SIGINT.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/config.h"
#include "common/loop.h"
#include "common/version.h"

namespace CLI {
class App;
}

namespace sekisho {

struct DaemonCommand {
  std::string config_path;
  bool check = false;  // read the configuration, say what is wrong, do nothing
};

// Adds --config (default /etc/sekisho/NAME.json), --check and --version to `app`.
void AddDaemonOptions(CLI::App& app, const std::string& name, DaemonCommand& command);

// Reads the command line.  What main() returns at once, if anything: after --help and --version, or 64 for a wrong one.
std::optional<int> ReadCommandLine(CLI::App& app, int argc, char** argv);

// For --check, and errors at the start: prints to stderr and gives main()'s exit code.
int ReportStart(const absl::Status& status);

// sd_notify(3) without the library: tells the service manager, if there is one.  NotifyReady() when
// calls are served.
void NotifyReady();
void NotifyStopping();

// Waits for SIGTERM or SIGINT; calls `reload` at each SIGHUP.
awaitable<void> WaitForStop(Loop& loop, std::function<void()> reload = {});

// Raises the soft limit of open descriptors to the hard one.
void RaiseDescriptorLimit();

// For daemons to which requests of megabytes come beside many small things that stay: the memory of those goes back to
// the system.  Before there are threads.
void GiveMemoryBack();

}  // namespace sekisho
