// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_harness.h"

#include <sys/stat.h>
#include <asio/experimental/awaitable_operators.hpp>
#include <cstdlib>
#include <thread>

namespace sekisho::agent {
namespace {

using asio::experimental::awaitable_operators::operator||;

constexpr int kFirstHelper = 1'000'000;

awaitable<void> Keep(std::shared_ptr<Session> session) { co_await session->Run(); }
awaitable<void> KeepLoad(std::shared_ptr<Session> session) { co_await session->ReportLoad(); }
awaitable<void> KeepHello(std::shared_ptr<Session> session) { co_await session->RepeatHello(); }

}  // namespace

awaitable<absl::Status> FakeServer::Serve(Call& call) {
  proto::AgentMessage message;
  if (!co_await call.Read(message) || !message.has_hello()) {
    co_return absl::InvalidArgumentError("no Hello");
  }
  hello = message.hello();
  proto::ServerMessage welcome;
  welcome.mutable_welcome()->set_site("test");
  welcome.mutable_welcome()->set_relaunches(is_relaunching);
  for (const proto::TaskKey& held : hello->held()) {
    auto& resume = *welcome.mutable_welcome()->add_resume();
    *resume.mutable_task() = held;
    resume.set_stdout_offset(seen[{held.job_id(), held.task()}].output[0].size());
    resume.set_stderr_offset(seen[{held.job_id(), held.task()}].output[1].size());
  }
  struct Detach {  // however the handler ends
    Call*& call;
    ~Detach() { call = nullptr; }
  } detach{call_};
  call_ = &call;
  is_dropping_ = false;
  call.Push(std::move(welcome));
  while (!is_dropping_) {
    const auto result = co_await (call.Read(message) || dropped_.Wait());
    if (result.index() == 1 || !std::get<0>(result)) {
      break;
    }
    OnMessage(message);
  }
  co_return absl::UnavailableError("the fake server drops the connection");
}

void FakeServer::OnMessage(const proto::AgentMessage& message) {
  if (message.has_hello()) {
    hello = message.hello();
    ++hellos;
  } else if (message.has_started()) {
    ++seen[{message.started().task().job_id(), message.started().task().task()}].started;
  } else if (message.has_exited()) {
    OnExited(message.exited());
  } else if (message.has_output()) {
    OnOutput(message.output());
  } else if (message.has_input_taken()) {
    const proto::TaskKey& key = message.input_taken().task();
    seen[{key.job_id(), key.task()}].input_taken = message.input_taken().offset();
    if (key.task() >= kFirstHelper) {
      proto::ServerMessage taken;
      taken.mutable_launch_input_taken()->set_id(launch_of_[key.task()]);
      taken.mutable_launch_input_taken()->set_offset(message.input_taken().offset());
      Send(taken);
    }
  } else if (message.has_load()) {
    load = message.load();
  } else if (message.has_ready()) {
    ++seen[{message.ready().task().job_id(), message.ready().task().task()}].ready;
  } else if (message.has_fence()) {
    fences.push_back(message.fence());
  } else if (message.has_launch()) {
    OnLaunch(message.launch());
  } else if (message.has_launch_input()) {
    OnLaunchInput(message.launch_input());
  }
}

void FakeServer::OnExited(const proto::AgentMessage::Exited& exited) {
  if (unheard_exits > 0) {
    --unheard_exits;
    return;
  }
  Seen& task = seen[{exited.task().job_id(), exited.task().task()}];
  task.exited = exited;
  ++task.exits;
  if (exited.task().task() >= kFirstHelper) {
    proto::ServerMessage ended;
    ended.mutable_launch_ended()->set_id(launch_of_[exited.task().task()]);
    *ended.mutable_launch_ended()->mutable_exit() = exited.exit();
    ended.mutable_launch_ended()->set_reason(exited.reason());
    Send(ended);
  }
}

// Every node is this one.
void FakeServer::OnLaunch(const proto::AgentMessage::Launch& launch) {
  launches.push_back(launch);
  proto::ServerMessage message;
  const bool is_new = helper_of_.try_emplace(launch.id(), kFirstHelper + 1 + static_cast<int>(helper_of_.size())).second;
  const int number = helper_of_[launch.id()];
  if (!is_new) {
    proto::ServerMessage::Welcome::Resume& resume = *message.mutable_resume();
    resume.mutable_task()->set_job_id(launch.job_id());
    resume.mutable_task()->set_task(number);
    resume.set_stdout_offset(launch.taken().stdout_offset());
    resume.set_stderr_offset(launch.taken().stderr_offset());
    seen[{launch.job_id(), number}].output[0].resize(launch.taken().stdout_offset());
    seen[{launch.job_id(), number}].output[1].resize(launch.taken().stderr_offset());
    return Send(message);
  }
  launch_of_[number] = launch.id();
  proto::ServerMessage::Start& start = *message.mutable_start();
  start.mutable_task()->set_job_id(launch.job_id());
  start.mutable_task()->set_task(number);
  start.set_account(account);
  *start.mutable_argument() = launch.argument();
  *start.mutable_environment() = launch.environment();
  start.set_has_input(true);
  start.set_is_helper(true);
  start.set_launch("n1:" + std::to_string(launch.id()));
  Send(message);
}

void FakeServer::OnLaunchInput(const proto::AgentMessage::LaunchInput& input) {
  proto::ServerMessage message;
  message.mutable_input()->mutable_task()->set_job_id("job");
  message.mutable_input()->mutable_task()->set_task(helper_of_[input.id()]);
  message.mutable_input()->set_offset(input.offset());
  message.mutable_input()->set_data(input.data());
  message.mutable_input()->set_end(input.end() || input.cancel());
  Send(message);
}

void FakeServer::OnOutput(const proto::AgentMessage::Output& output) {
  std::string& spool = seen[{output.task().job_id(), output.task().task()}].output[output.stream()];
  if (output.offset() != spool.size()) {
    spool = "offset " + std::to_string(output.offset()) + " is not the spool's end, " +
            std::to_string(spool.size());
    return;
  }
  spool += output.data();
  if (output.task().task() >= kFirstHelper) {
    proto::ServerMessage passed;
    passed.mutable_launch_output()->set_id(launch_of_[output.task().task()]);
    passed.mutable_launch_output()->set_offset(output.offset());
    passed.mutable_launch_output()->set_stream(output.stream());
    passed.mutable_launch_output()->set_data(output.data());
    Send(passed);
  }
  if (spool.size() > drop_after) {
    drop_after = SIZE_MAX;
    DropConnection();
  } else if (is_acknowledging) {
    proto::ServerMessage taken;
    *taken.mutable_output_taken()->mutable_task() = output.task();
    taken.mutable_output_taken()->set_stream(output.stream());
    taken.mutable_output_taken()->set_offset(spool.size());
    Send(taken);
  }
}

Agent::Agent(Loop& loop, const std::string& root, const std::string& server,
             const CgroupPlace& place, const std::string& boot_id, uint64_t output_limit, std::chrono::milliseconds hello_every)
    : watcher(loop), launches(outbox), loop_(loop) {
  const NodeSettings node{.boot_id = boot_id,
                          .launch_socket = root + "/launch",
                          .pmi_socket = root + "/pmi",
                          .grouping = place.grouping,
                          .cgroup_parent = place.parent,
                          .process_limit = 1000};
  tasks = std::make_unique<Tasks>(
      loop, watcher, outbox,
      Tasks::Settings{.state_directory = root + "/state",
                      .task_program = std::string(std::getenv("SEKISHO_BIN")) + "/sekisho-task",
                      .node = node,
                      .output_limit = output_limit,
                      .on_change = [this] {
                        if (session) {
                          session->LoadChanged();
                        }
                      },
                      .judge_end =
                          [this](const task::Spec& spec, task::Ended& ended) {
                            return !pmi || pmi->Judge(spec, ended);
                          }});
  pmi = std::make_unique<PmiServer>(
      loop, outbox,
      [this](const std::string& job_id, const std::string& token) {
        return tasks->FindByToken(job_id, token);
      },
      [this](const std::string& job_id, int task) { tasks->Kill(job_id, task); },
      [this](const std::string& job_id, int task) { tasks->TakeEnd(job_id, task); });
  CHECK(pmi->KeepIn(root + "/state/.pmi").ok() && tasks->Recover().ok());
  pmi->Recover([this](const std::string& job_id) { return tasks->FindRunning(job_id); });
  launcher = std::make_unique<LauncherService>(
      loop, outbox, launches, [this](const std::string& job_id, const std::string& token) {
        return tasks->FindByToken(job_id, token);
      });
  CHECK(pmi->Listen(node.pmi_socket).ok());
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + node.launch_socket, grpc::InsecureServerCredentials());
  builder.RegisterService(launcher.get());
  door = builder.BuildAndStart();
  CHECK(door != nullptr && chmod(node.launch_socket.c_str(), 0666) == 0);
  session = std::make_shared<Session>(
      loop, grpc::CreateChannel(server, grpc::InsecureChannelCredentials()), outbox, *tasks,
      launches,
      Session::Settings{.node = "n1",
                        .facts = {.boot_id = boot_id, .processors = 2},
                        .why = {},
                        .pilot = {},
                        .on_attached = [this] { pmi->OnWelcome(); },
                        .on_message = [this](const proto::ServerMessage& message) { pmi->Handle(message); },
                        .on_lost = {},
                        .first_delay = std::chrono::milliseconds(5),
                        .longest_delay = std::chrono::milliseconds(20),
                        .hello_every = hello_every});
  co_spawn(loop, Keep(session), Vital("the test"));
  co_spawn(loop, KeepLoad(session), Vital("the test"));
  co_spawn(loop, KeepHello(session), Vital("the test"));
}

Agent::~Agent() {
  session->Stop();
  // Shutdown blocks, and what it waits for needs the loop.
  bool is_down = false;
  std::thread shutdown([this, &is_down] {
    door->Shutdown(std::chrono::system_clock::now());
    asio::post(loop_, [&is_down] { is_down = true; });
  });
  while (!is_down) {
    loop_.restart();
    loop_.run_for(std::chrono::milliseconds(1));
  }
  shutdown.join();
}

}  // namespace sekisho::agent
