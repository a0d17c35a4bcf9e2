// SPDX-License-Identifier: Apache-2.0
// sekisho-pilot: an agent for one job on one host.  A batch system starts it as the job's account, it asks
// the queue server what to run, and it ends with the job.  It is two processes: the one that the batch system knows
// starts the other anew if it dies.  docs/protocol/13-slurm.md.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <pwd.h>

#include "agent/errors.h"
#include "agent/host_facts.h"
#include "agent/keeper.h"
#include "agent/launches.h"
#include "agent/links.h"
#include "agent/outbox.h"
#include "agent/pilot.h"
#include "agent/pilot_folder.h"
#include "agent/pm_daemons.h"
#include "agent/pmi_server.h"
#include "agent/session.h"
#include "agent/tasks.h"
#include "agent/watcher.h"
#include "common/daemon.h"
#include "common/log.h"
#include "common/refusal.h"

namespace sekisho::agent {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kOutputLimit = uint64_t{10240} << 20;
constexpr int64_t kGraceMs = 5000;

// `ps` and `pkill` shall know it from the pilot that it keeps.
constexpr char kKeeperName[] = "sekisho-keeper";

struct Options {
  std::string job_id;
  std::string server;
  std::string server_subject;
  std::string ca_directory = "/etc/grid-security/certificates";
  std::string records;
  int64_t process_limit = 4096;
};

std::string VariableOf(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  const std::string known = VariableOf("SLURMD_NODENAME");
  return known.empty() ? name : known;
}

fs::path OwnPath() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

// When the pilot goes: the queue server has forgotten its job, or will have nothing of it.
class Leave {
 public:
  Leave(Loop& loop, std::string job_id) : loop_(loop), job_id_(std::move(job_id)) {}

  void Use(Tasks& tasks, PmDaemons& pm_daemons) {
    tasks_ = &tasks;
    pm_daemons_ = &pm_daemons;
  }
  void OnMessage(const proto::ServerMessage& message) {
    if (message.has_forget() && message.forget().job_id() == job_id_ && message.forget().task() == 0) {
      is_leaving_ = true;
      OnChange();
    }
  }
  void OnLost(const absl::Status& status) {
    if (absl::IsPermissionDenied(status)) {
      spdlog::error("the queue server refuses this pilot: {}", Printable(Message(status)));
      proto::ServerMessage forget;
      forget.mutable_forget()->set_job_id(job_id_);
      tasks_->Handle(forget);
      pm_daemons_->Handle(forget);
      is_leaving_ = true;
      OnChange();
    }
  }
  // The batch system ends the job: what runs is ended, and told.
  void OnTerminated() {
    spdlog::warn("told to end");
    proto::ServerMessage kill;
    kill.mutable_kill()->set_job_id(job_id_);
    kill.mutable_kill()->set_signal(SIGTERM);
    kill.mutable_kill()->set_grace_ms(kGraceMs);
    tasks_->Handle(kill);
  }
  void OnChange() {
    if (is_leaving_ && tasks_ != nullptr && tasks_->running() == 0) {
      asio::post(loop_, [this] { loop_.stop(); });
    }
  }

 private:
  Loop& loop_;
  const std::string job_id_;
  Tasks* tasks_ = nullptr;
  PmDaemons* pm_daemons_ = nullptr;
  bool is_leaving_ = false;
};

awaitable<void> HearSignals(Loop& loop, Leave& leave) {
  for (;;) {
    co_await WaitForStop(loop);
    leave.OnTerminated();
  }
}

absl::Status Run(const Options& options) {
  ASSIGN_OR_RETURN(const proto::AgentMessage::Pilot pilot, ReadPilot(options.job_id, VariableOf));
  unsetenv("SEKISHO_PILOT_TOKEN");
  ASSIGN_OR_RETURN(const identity::Credential credential, MadeUpCredential());
  const tls::ClientTls tls = tls::MakeClientTls(credential, options.ca_directory,
                                                {.host = "", .subject = options.server_subject});
  std::signal(SIGCHLD, SIG_IGN);  // supervisors leave us at once, but stay below our keeper
  umask(022);

  std::error_code error;
  const fs::path here = OwnPath().parent_path();
  const fs::path installed = here / "../libexec/sekisho/sekisho-task";
  const fs::path pm_beside = here / "sekisho-pmd";  // in a tree of a build
  const HostFacts facts = ReadHostFacts();
  const std::string launch_socket = options.records + "/launch";
  const std::string pmi_socket = options.records + "/pmi";
  const std::string pm_socket = options.records + "/pm";
  const NodeSettings node{.boot_id = facts.boot_id,
                          .launch_socket = launch_socket,
                          .pmi_socket = pmi_socket,
                          .pm_socket = pm_socket,
                          .grouping = task::Grouping::kNone,
                          .cgroup_parent = "",
                          .process_limit = options.process_limit};
  const std::string task_program = fs::exists(installed, error) ? installed.lexically_normal().string()
                                                                : (here / "sekisho-task").string();
  Loop& loop = ProcessLoop();
  Outbox outbox;
  Leave leave(loop, options.job_id);
  PmiServer* pmi_pointer = nullptr;
  Watcher watcher(loop);
  Tasks tasks(loop, watcher, outbox,
              {.state_directory = options.records + "/tasks",
               .task_program = task_program,
               .node = node,
               .output_limit = kOutputLimit,
               .on_change = [&leave] { leave.OnChange(); },
               .judge_end =
                   [&pmi_pointer](const task::Spec& spec, task::Ended& ended) {
                     return pmi_pointer == nullptr || pmi_pointer->Judge(spec, ended);
                   }});
  const auto find_task = [&tasks](const std::string& job_id, const std::string& token) {
    return tasks.FindByToken(job_id, token);
  };
  PmiServer pmi(loop, outbox, find_task,
                [&tasks](const std::string& job_id, int task) { tasks.Kill(job_id, task); },
                [&tasks](const std::string& job_id, int task) { tasks.TakeEnd(job_id, task); });
  pmi_pointer = &pmi;
  RETURN_IF_ERROR(pmi.KeepIn(options.records + "/ranks"));
  RETURN_IF_ERROR(tasks.Recover());
  const auto find_running = [&tasks](const std::string& id) { return tasks.FindRunning(id); };
  pmi.Recover(find_running);
  PmDaemons pm_daemons(loop, watcher,
                       {.program = (fs::exists(pm_beside, error) ? pm_beside : here / "../../bin/sekisho-pmd").string(),
                        .folder = options.records + "/pm.d",
                        .state_directory = options.records + "/pm.tasks",
                        .task_program = task_program,
                        .node = node},
                       find_running);
  leave.Use(tasks, pm_daemons);
  proto::AgentMessage::Hello held;
  tasks.FillHello(held);
  RETURN_IF_ERROR(pm_daemons.Recover(held));
  RETURN_IF_ERROR(pm_daemons.Listen(pm_socket));
  Launches launches(outbox);
  LauncherService launcher(loop, outbox, launches, find_task);
  RETURN_IF_ERROR(pmi.Listen(pmi_socket));
  Acceptor door(loop, {}, /*expect_tls=*/false);
  ASSIGN_OR_RETURN(const auto server, ServeLauncher(door, launch_socket, launcher));
  Session::Settings settings;
  settings.node = HostName();
  settings.facts = facts;
  settings.why = [&tls] {
    const auto found = tls.server->Get();
    return found.ok() ? std::string() : Message(found.status());
  };
  settings.longest_delay = std::chrono::milliseconds(2000);
  settings.pilot = pilot;
  settings.on_attached = [&pmi] { pmi.OnWelcome(); };
  settings.on_message = [&leave, &pmi, &pm_daemons](const proto::ServerMessage& message) {
    pmi.Handle(message);
    pm_daemons.Handle(message);
    leave.OnMessage(message);
  };
  settings.on_lost = [&leave](const absl::Status& status) { leave.OnLost(status); };
  Session session(loop, DialQueueServer(options.server, tls), outbox, tasks, launches, std::move(settings));

  co_spawn(loop, session.Run(), Vital("its queue server"));
  co_spawn(loop, session.ReportLoad(), Vital("its reports"));
  co_spawn(loop, session.RepeatHello(), Vital("its hellos"));
  co_spawn(loop, HearSignals(loop, leave), Vital("its signals"));
  loop.run();
  session.Stop();
  // Shutdown waits for calls of sekisho-rsh, and they for the loop.
  std::atomic<bool> is_down = false;
  std::thread shutdown([&server, &is_down] {
    server->Shutdown(std::chrono::system_clock::now());
    is_down = true;
  });
  while (!is_down) {
    loop.restart();
    loop.run_for(std::chrono::milliseconds(10));
  }
  shutdown.join();
  return absl::OkStatus();
}

int KeepPilot(const std::string& job_id, int argc, char** argv) {
  const PilotFolder folder(VariableOf("TMPDIR").empty() ? "/tmp" : VariableOf("TMPDIR"), job_id);
  if (!folder.is_made()) {
    return ReportStart(errors::BadDirectory(folder.path(), std::strerror(errno)));
  }
  std::vector<std::string> words(argv, argv + argc);
  words[0] = OwnPath();  // not the open file: what is installed by then
  words.insert(words.end(), {"--records", folder.path()});
  prctl(PR_SET_NAME, kKeeperName, 0, 0, 0);
  return Keep(words, {});
}

}  // namespace
}  // namespace sekisho::agent

int main(int argc, char** argv) {
  CLI::App app("Runs one job of Sekisho on this host.  Started by a batch job of the queue server only.\n"
               "Manual: docs/operations/slurm.md");
  sekisho::agent::Options options;
  app.add_option("--job", options.job_id, "The job's id")->required();
  app.add_option("--server", options.server, "HOST:PORT of the queue server's listen_nodes")->required();
  app.add_option("--server-subject", options.server_subject, "Subject of its certificate, if it does not name HOST");
  app.add_option("--ca-directory", options.ca_directory, "Trusted authorities");
  app.add_option("--process-limit", options.process_limit, "Processes and threads of a task, and of its account on this host")
      ->check(CLI::PositiveNumber);
  app.add_option("--records", options.records, "Where its tasks' records are; without it, it makes itself another pilot "
                                                "with it, as often as that is killed");
  if (const auto code = sekisho::ReadCommandLine(app, argc, argv)) {
    return *code;
  }
  sekisho::InitLog(options.records.empty() ? "keeper" : "pilot");
  if (options.records.empty()) {
    return sekisho::agent::KeepPilot(options.job_id, argc, argv);
  }
  return sekisho::ReportStart(sekisho::agent::Run(options));
}
