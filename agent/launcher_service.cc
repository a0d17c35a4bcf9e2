// SPDX-License-Identifier: Apache-2.0
#include "agent/launcher_service.h"

#include <asio/experimental/awaitable_operators.hpp>

#include "agent/errors.h"
#include "common/log.h"

namespace sekisho::agent {
namespace {

using Call = rpc::Duplex<proto::LaunchIn, proto::LaunchOut>;
using asio::experimental::awaitable_operators::operator||;

constexpr size_t kQueuedMost = 4096;  // messages for a sekisho-rsh that does not read

// Keeps the launch open as long as its call.
class OpenLaunch {
 public:
  OpenLaunch(Launches& launches, uint64_t id) : launches_(launches), id_(id) {}
  ~OpenLaunch() { launches_.Close(id_); }
  OpenLaunch(const OpenLaunch&) = delete;
  OpenLaunch& operator=(const OpenLaunch&) = delete;

 private:
  Launches& launches_;
  uint64_t id_;
};

awaitable<void> ForwardInput(Call& call, Launches& launches, uint64_t id) {
  proto::LaunchIn in;
  while (co_await call.Read(in)) {
    if (in.has_data() || in.has_end()) {
      launches.Input(id, std::move(*in.mutable_data()), in.end());
    }
  }
  launches.Input(id, "", true);
}

// A helper sees what the task sees that asks for it, but for what is the task's own.
void AddEnvironment(const task::Spec& task, proto::AgentMessage::Launch& launch) {
  for (const std::string& variable : task.environment) {
    const size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    if (name != "SEKISHO_TASK" && name.rfind("SEKISHO_LAUNCH_", 0) != 0) {
      (*launch.mutable_environment())[name] = variable.substr(equals + 1);
    }
  }
}

struct Ending {
  explicit Ending(Loop& loop) : changed(loop) {}
  Signal changed;
  bool has_ended = false;
  bool is_stuck = false;
};

awaitable<void> AwaitEnd(Ending& ending) {
  while (!ending.has_ended && !ending.is_stuck) {
    co_await ending.changed.Wait();
  }
}

}  // namespace

LauncherService::LauncherService(Loop& loop, Outbox& outbox, Launches& launches, FindTask find_task)
    : loop_(loop), outbox_(outbox), launches_(launches), find_task_(std::move(find_task)) {}

grpc::ServerBidiReactor<proto::LaunchIn, proto::LaunchOut>* LauncherService::Launch(
    grpc::CallbackServerContext* /*context*/) {
  return rpc::Converse<proto::LaunchIn, proto::LaunchOut>(
      loop_, [this](Call& call) { return Serve(call); });
}

awaitable<absl::Status> LauncherService::Serve(Call& call) {
  // Validate.
  proto::LaunchIn first;
  if (!co_await call.Read(first) || !first.has_begin()) {
    co_return absl::InvalidArgumentError("a launch begins with Begin");
  }
  const proto::LaunchIn::Begin& begin = first.begin();
  const task::Spec* task = find_task_(begin.job_id(), begin.token());
  if (task == nullptr) {
    co_return errors::NotOwnTask(Printable(begin.job_id()));
  }
  if (!outbox_.is_connected()) {
    co_return errors::NotConnected();
  }

  // Ask, and pass on what comes back.
  proto::AgentMessage::Launch launch;
  launch.set_job_id(begin.job_id());
  launch.set_node(begin.node());
  *launch.mutable_argument() = begin.argument();
  launch.set_directory(begin.directory());
  AddEnvironment(*task, launch);
  Ending ending(loop_);
  const uint64_t id = launches_.Open(std::move(launch), [&call, &ending](proto::LaunchOut out) {
    ending.has_ended = ending.has_ended || out.has_ended();
    ending.is_stuck = call.queued() > kQueuedMost;
    call.Push(std::move(out));
    if (ending.has_ended || ending.is_stuck) {
      ending.changed.Notify();
    }
  });
  const OpenLaunch open(launches_, id);
  spdlog::debug("helper asked for job={} node={}", Printable(begin.job_id()),
                Printable(begin.node()));

  // Input flows until the helper has ended, and then no more.
  co_await (AwaitEnd(ending) || Forever(call, id));
  if (ending.is_stuck) {
    co_return absl::ResourceExhaustedError("sekisho-rsh does not take the helper's output");
  }
  co_await call.Drain();
  co_return absl::OkStatus();
}

// Forwards input; ends only if the peer is gone.
awaitable<void> LauncherService::Forever(Call& call, uint64_t id) {
  co_await ForwardInput(call, launches_, id);
  Signal never(loop_);
  co_await never.Wait();
}

}  // namespace sekisho::agent
