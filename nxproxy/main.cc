// SPDX-License-Identifier: Apache-2.0
// sekisho-nxproxy, the relay: docs/operations/nxproxy.md.
#include <csignal>

#include <sys/signalfd.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "common/daemon.h"
#include "common/log.h"
#include "nxproxy/exposer.h"
#include "nxproxy/http.h"
#include "nxproxy/relay.h"

namespace sekisho::nxproxy {
namespace {

constexpr int kTick_ms = 100;

// SIGTERM, SIGINT and SIGHUP as events.
class Signals final : public Handler {
 public:
  explicit Signals(Poller& poller) {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
      sigaddset(&set, number);
    }
    sigprocmask(SIG_BLOCK, &set, nullptr);  // before any thread begins
    fd_ = Descriptor(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
    poller.Add(fd_.get(), EPOLLIN, this);
  }
  void OnEvents(uint32_t /*events*/) override {
    signalfd_siginfo info;
    while (read(fd_.get(), &info, sizeof info) == sizeof info) {
      (info.ssi_signo == SIGHUP ? reload : stop) = true;
    }
  }
  bool stop = false;
  bool reload = false;

 private:
  Descriptor fd_;
};

absl::StatusOr<std::unique_ptr<Http>> MakeHttp(Poller& poller, const Config& config,
                                               const Relay& relay) {
  const std::string admin = OrDefault(config.admin(), "127.0.0.1:7515");
  if (admin == "none") {
    return nullptr;
  }
  const auto address = wire::ParseAddress(admin);
  if (!address) {
    return absl::InvalidArgumentError("admin: expected ADDRESS:PORT or none, got '" + admin + "'");
  }
  Descriptor socket = ListenOn(*address);
  if (!socket.is_open()) {
    return absl::FailedPreconditionError(admin + ": " + strerror(errno));
  }
  return std::make_unique<Http>(
      poller, std::move(socket), [&relay](const std::string& path) -> std::string {
        return path == "/metrics" ? relay.Metrics() : path == "/list" ? relay.List() : "";
      });
}

// Certificates, authorities, and of the configuration the policy; a mistake in either changes nothing of both.
absl::Status Reload(const std::string& path, const Config& config, Relay& relay) {
  ASSIGN_OR_RETURN(const Config fresh, LoadConfig<Config>(path));
  Config changed = config;
  *changed.mutable_policy() = fresh.policy();
  changed.mutable_policy()->set_encrypt(config.policy().encrypt());  // of endpoints that stand already
  ASSIGN_OR_RETURN(Policy policy, Policy::Make(changed));
  RETURN_IF_ERROR(relay.Reload());
  relay.SetPolicy(std::move(policy));
  return absl::OkStatus();
}

absl::Status Run(const Config& config, const std::string& path) {
  ASSIGN_OR_RETURN(Policy policy, Policy::Make(config));
  std::signal(SIGPIPE, SIG_IGN);
  Poller poller;
  Signals signals(poller);
  Relay relay(poller, config, std::move(policy));
  RETURN_IF_ERROR(relay.Start());
  ASSIGN_OR_RETURN(const std::unique_ptr<Http> http, MakeHttp(poller, config, relay));
  ASSIGN_OR_RETURN(const std::unique_ptr<Exposer> exposer, Exposer::Make(poller, config, relay));
  spdlog::info("relay ready site={} port={}", config.site(), relay.port());
  NotifyReady();

  int64_t drained_ms = 0;
  int64_t ticked_ms = 0;
  for (;;) {
    poller.RunOnce(kTick_ms);
    const int64_t now_ms = NowMs();
    if (now_ms - ticked_ms >= kTick_ms) {
      ticked_ms = now_ms;
      relay.Tick(now_ms);
      exposer->Tick(now_ms);
      if (http != nullptr) {
        http->Tick(now_ms);
      }
    }
    relay.EndTurn();
    if (signals.reload) {
      signals.reload = false;
      const absl::Status status = Reload(path, config, relay);
      spdlog::info(
          "reloaded{}",
          status.ok() ? "" : ": the last good version stays in force: " + status.ToString());
    }
    if (signals.stop && drained_ms == 0) {
      NotifyStopping();
      spdlog::info("stopping streams={}", relay.streams());
      drained_ms = now_ms + LimitsOf(config.limits()).drain_s * 1000;
      relay.Drain();
      exposer->Drain();
    }
    if (drained_ms != 0 && (relay.streams() == 0 || now_ms >= drained_ms)) {
      return absl::OkStatus();
    }
  }
}

}  // namespace
}  // namespace sekisho::nxproxy

int main(int argc, char** argv) {
  CLI::App app("The relay: programs inside bind endpoints here, and are reached from outside.\n"
               "Manual: docs/operations/nxproxy.md");
  sekisho::DaemonCommand command;
  sekisho::AddDaemonOptions(app, "nxproxy", command);
  if (const auto code = sekisho::ReadCommandLine(app, argc, argv)) {
    return *code;
  }
  sekisho::InitLog("nxproxy");
  sekisho::RaiseDescriptorLimit();

  const auto config = sekisho::LoadConfig<sekisho::nxproxy::Config>(command.config_path);
  if (!config.ok()) {
    return sekisho::ReportStart(config.status());
  }
  if (command.check) {
    return sekisho::ReportStart(sekisho::nxproxy::Policy::Make(*config).status());
  }
  return sekisho::ReportStart(sekisho::nxproxy::Run(*config, command.config_path));
}
