// SPDX-License-Identifier: Apache-2.0
// sekisho-agent: starts and watches tasks on one compute node, for the queue server that it dials;
// with --probe-only, run by anybody, a prober of the network instead.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <cstring>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "agent/config.pb.h"
#include "agent/errors.h"
#include "agent/grouping.h"
#include "agent/host_facts.h"
#include "agent/launcher_service.h"
#include "agent/launches.h"
#include "agent/links.h"
#include "agent/outbox.h"
#include "agent/pm_daemons.h"
#include "agent/pmi_server.h"
#include "agent/session.h"
#include "agent/task/record.h"
#include "agent/tasks.h"
#include "agent/watcher.h"
#include "common/acceptor.h"
#include "common/daemon.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/refusal.h"
#include "common/tls/client_tls.h"
#include "topology/probe/prober.h"

namespace sekisho::agent {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLaunchesPerAccount = 1024;

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

void SetDefaults(Config& config) {
  const auto set = [](std::string* value, const std::string& fallback) {
    *value = value->empty() ? fallback : *value;
  };
  set(config.mutable_node(), HostName());
  set(config.mutable_host_certificate(), "/etc/grid-security/hostcert.pem");
  set(config.mutable_host_key(), "/etc/grid-security/hostkey.pem");
  set(config.mutable_ca_directory(), "/etc/grid-security/certificates");
  set(config.mutable_state_directory(), "/var/lib/sekisho/agent");
  set(config.mutable_launch_socket(), "/run/sekisho/agent/launch");
  set(config.mutable_pmi_socket(), "/run/sekisho/agent/pmi");
  set(config.mutable_pm_socket(), "/run/sekisho/agent/pm");
  set(config.mutable_cgroup(), "auto");
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path installed = here / "../libexec/sekisho/sekisho-task";
  set(config.mutable_task_program(), fs::exists(installed, error)
                                         ? installed.lexically_normal().string()
                                         : (here / "sekisho-task").string());
  set(config.mutable_pm_program(), (here / "sekisho-pmd").string());
  config.set_output_limit_mb(config.output_limit_mb() == 0 ? 10240 : config.output_limit_mb());
  config.set_process_limit(config.process_limit() == 0 ? 4096 : config.process_limit());
}

absl::Status CheckConfig(const Config& config) {
  const std::string& kind = config.cgroup();
  if (config.qserver().empty()) {
    return absl::InvalidArgumentError("qserver: the queue server's host:port is missing");
  }
  if (kind != "auto" && !task::ParseGrouping(kind)) {
    return absl::InvalidArgumentError(
        fmt::format("cgroup: expected auto, v2, v1 or none, not \"{}\"", kind));
  }
  if (access(config.task_program().c_str(), X_OK) != 0) {
    return absl::NotFoundError(fmt::format("task_program: cannot run {}", config.task_program()));
  }
  return absl::OkStatus();
}

// One agent per state directory, which gets a name of its own for the cgroups.
absl::StatusOr<std::string> ClaimState(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  const int lock = open((directory + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) {
    return errors::BadDirectory(directory, std::strerror(errno));
  }
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {  // held until we end
    return errors::BadDirectory(directory, "another agent uses it");
  }
  const int dir = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::string id;
  if (!task::ReadFile(dir, ".id", id) || !task::IsJobId(id)) {
    std::random_device random;
    id = fmt::format("{:08x}{:08x}", random(), random());
    if (!task::WriteFile(dir, ".id", id, task::Durability::kMachine)) {
      close(dir);
      return errors::BadDirectory(directory, std::strerror(errno));
    }
  }
  close(dir);
  return id;
}

absl::StatusOr<tls::ClientTls> HostTls(const Config& config) {
  ASSIGN_OR_RETURN(identity::Credential credential,
                   identity::LoadHostCredential(config.host_certificate(), config.host_key()));
  return tls::MakeClientTls(credential, config.ca_directory(),
                            {.host = "", .subject = config.qserver_subject()});
}

awaitable<void> StopAtSignal(Loop& loop, const CgroupPlace& place) {
  co_await WaitForStop(loop);
  rmdir(place.parent.c_str());  // unless tasks go on
  std::_Exit(0);  // they do, and who has asked for helpers waits for the next agent: there is nothing to wind down
}

absl::Status Run(const Config& config, bool is_check) {
  RETURN_IF_ERROR(CheckConfig(config));
  RETURN_IF_ERROR(Watcher::CanWatch());
  ASSIGN_OR_RETURN(const tls::ClientTls tls, HostTls(config));
  if (is_check) {
    return absl::OkStatus();
  }
  std::signal(SIGCHLD, SIG_IGN);  // supervisors leave us at once, and nobody else is a child
  umask(022);

  ASSIGN_OR_RETURN(const std::string id, ClaimState(config.state_directory()));
  ASSIGN_OR_RETURN(const CgroupPlace place, PrepareCgroup(config.cgroup(), id));
  const HostFacts facts = ReadHostFacts();
  const NodeSettings node{.boot_id = facts.boot_id,
                          .launch_socket = config.launch_socket(),
                          .pmi_socket = config.pmi_socket(),
                          .pm_socket = config.pm_socket(),
                          .grouping = place.grouping,
                          .cgroup_parent = place.parent,
                          .process_limit = config.process_limit()};
  Loop& loop = ProcessLoop();
  Outbox outbox;
  Session* session_pointer = nullptr;
  PmiServer* pmi_pointer = nullptr;
  Watcher watcher(loop);
  Tasks tasks(loop, watcher, outbox,
              {.state_directory = config.state_directory(),
               .task_program = config.task_program(),
               .node = node,
               .output_limit = static_cast<uint64_t>(config.output_limit_mb()) << 20,
               .on_change = [&session_pointer] {
                 if (session_pointer != nullptr) {
                   session_pointer->LoadChanged();
                 }
               },
               .judge_end =
                   [&pmi_pointer](const task::Spec& spec, task::Ended& ended) {
                     return pmi_pointer == nullptr || pmi_pointer->Judge(spec, ended);
                   }});
  const auto find_task = [&tasks](const std::string& job_id, const std::string& token) {
    return tasks.FindByToken(job_id, token);
  };
  const auto find_running = [&tasks](const std::string& job_id) { return tasks.FindRunning(job_id); };
  PmiServer pmi(loop, outbox, find_task,
                [&tasks](const std::string& job_id, int task) { tasks.Kill(job_id, task); },
                [&tasks](const std::string& job_id, int task) { tasks.TakeEnd(job_id, task); });
  pmi_pointer = &pmi;
  RETURN_IF_ERROR(pmi.KeepIn(config.state_directory() + "/.pmi"));
  RETURN_IF_ERROR(tasks.Recover());
  pmi.Recover(find_running);
  Watcher pm_watcher(loop);  // of folders that accounts own: who floods it is no matter of the tasks
  PmDaemons pm_daemons(loop, pm_watcher,
                       {.program = config.pm_program(),
                        // Accounts write there: not below /run, which is memory.
                        .folder = config.state_directory() + "/.pm.d",
                        .state_directory = config.state_directory() + "/.pm",
                        .task_program = config.task_program(),
                        .node = node},
                       find_running);
  proto::AgentMessage::Hello held;
  tasks.FillHello(held);
  RETURN_IF_ERROR(pm_daemons.Recover(held));
  RETURN_IF_ERROR(pm_daemons.Listen(config.pm_socket()));
  Launches launches(outbox);
  LauncherService launcher(loop, outbox, launches, find_task);
  RETURN_IF_ERROR(pmi.Listen(config.pmi_socket()));
  Acceptor door(loop, {.per_peer = kLaunchesPerAccount}, /*expect_tls=*/false);
  ASSIGN_OR_RETURN(const auto server, ServeLauncher(door, config.launch_socket(), launcher));
  bool is_attached = false;
  uint64_t tasks_started = 0;
  Session session(loop, DialQueueServer(config.qserver(), tls), outbox, tasks, launches,
                  {.node = config.node(),
                   .facts = facts,
                   .why =
                       [&tls] {
                         const auto found = tls.server->Get();
                         return found.ok() ? std::string() : Message(found.status());
                       },
                   .on_attached =
                       [&pmi, &is_attached] {
                         is_attached = true;
                         pmi.OnWelcome();
                       },
                   .on_message =
                       [&pmi, &pm_daemons, &tasks_started](const proto::ServerMessage& message) {
                         tasks_started += message.has_start() && !message.start().account().empty() &&
                                          !message.start().check_only();
                         pmi.Handle(message);
                         pm_daemons.Handle(message);
                       },
                   .on_lost = [&is_attached](const absl::Status&) { is_attached = false; }});
  session_pointer = &session;

  co_spawn(loop, session.Run(), Vital("its queue server"));
  co_spawn(loop, session.ReportLoad(), Vital("its reports"));
  co_spawn(loop, session.RepeatHello(), Vital("its hellos"));
  co_spawn(loop, StopAtSignal(loop, place), Vital("its signals"));
  spdlog::info("agent of node {} ready: tasks kept together by cgroup {}", config.node(),
               task::Name(place.grouping));
  ServeMetrics(loop, "agent", OrDefault(config.metrics(), "127.0.0.1:7523"), [&](Metrics& metrics) {
    metrics.Gauge("attached", "1: the queue server hears us.", is_attached);
    metrics.Gauge("tasks", "Tasks that run.", double(tasks.running()));
    metrics.Counter("tasks_started_total", "Tasks that the queue server has had us start.", double(tasks_started));
  });
  NotifyReady();
  loop.run();
  return absl::OkStatus();
}

absl::Status LoadAndRun(const DaemonCommand& command) {
  ASSIGN_OR_RETURN(Config config, LoadConfig<Config>(command.config_path));
  SetDefaults(config);
  return Run(config, command.check);
}

}  // namespace
}  // namespace sekisho::agent

int main(int argc, char** argv) {
  CLI::App app(
      "The agent of one compute node: starts, watches and ends tasks for its queue server.\n"
      "Manual: docs/operations/agent.md");
  sekisho::DaemonCommand command;
  sekisho::AddDaemonOptions(app, "agent", command);
  bool is_prober = false;
  std::string interface;
  CLI::Option* probe_only = app.add_flag(
      "--probe-only", is_prober,
      "Run no tasks: measure the network for sekisho topology, on standard input and output");
  app.add_option("--interface", interface, "... at this network interface (the first)")
      ->needs(probe_only);
  if (const auto code = sekisho::ReadCommandLine(app, argc, argv)) {
    return *code;
  }
  if (is_prober) {
    return sekisho::ReportStart(
        sekisho::topology::RunProber(interface, STDIN_FILENO, STDOUT_FILENO));
  }
  sekisho::InitLog("agent");
  return sekisho::ReportStart(sekisho::agent::LoadAndRun(command));
}
