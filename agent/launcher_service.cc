// SPDX-License-Identifier: Apache-2.0
#include "agent/launcher_service.h"

#include <optional>

#include <asio/experimental/awaitable_operators.hpp>

#include "agent/errors.h"
#include "common/log.h"

namespace sekisho::agent {
namespace {

using Call = rpc::Duplex<proto::LaunchIn, proto::LaunchOut>;
using asio::experimental::awaitable_operators::operator||;

constexpr std::chrono::seconds kBeginWithin{10};
constexpr uint64_t kOffsetMost = uint64_t{1} << 62;

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

proto::AgentMessage::Launch RequestOf(const proto::LaunchIn::Begin& begin, const task::Spec& task) {
  proto::AgentMessage::Launch launch;
  launch.set_id(begin.id());
  launch.set_job_id(begin.job_id());
  launch.set_node(begin.node());
  *launch.mutable_argument() = begin.argument();
  launch.set_directory(begin.directory());
  launch.set_again(begin.again());
  *launch.mutable_taken() = begin.taken();
  AddEnvironment(task, launch);
  return launch;
}

// What has come back for a launcher.
struct Progress {
  explicit Progress(Loop& loop) : changed(loop) {}
  Signal changed;
  bool is_lost = false;
};

awaitable<void> AwaitLoss(Progress& progress) {
  while (!progress.is_lost) {
    co_await progress.changed.Wait();
  }
}

// Until the launcher has gone.  Input flows as the helper takes it, and whatever a launcher says that does not read, or says
// ever again: it does not fill our memory.
awaitable<void> Hear(Call& call, Launches& launches, uint64_t id, Progress& progress) {
  proto::LaunchIn in;
  for (;;) {
    const bool is_read = co_await call.Read(in);
    if (!is_read) {
      co_return;
    }
    const bool is_there = co_await call.Drain();
    if (!is_there) {
      co_return;
    }
    if (in.has_taken()) {
      launches.OutputTaken(id, in.taken().stream(), in.taken().offset());
    } else if (in.has_data()) {
      launches.Input(id, std::move(*in.mutable_data()), false);
    } else if (in.has_end()) {
      launches.Input(id, "", in.end());
    }
    while (!launches.HasRoomForInput(id)) {
      co_await progress.changed.Wait();
    }
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
  const auto came = co_await (call.Read(first) || Sleep(loop_, kBeginWithin));
  const bool* is_read = std::get_if<bool>(&came);
  if (is_read == nullptr || !*is_read || !first.has_begin() || first.begin().id() == 0) {
    co_return errors::NoBegin();
  }
  const proto::LaunchIn::Begin& begin = first.begin();
  const task::Spec* task = find_task_(begin.job_id(), begin.token());
  if (task == nullptr) {
    co_return errors::NotOwnTask(Printable(begin.job_id()));
  }
  if (begin.input_offset() > kOffsetMost) {
    co_return errors::BadOffset(begin.input_offset());
  }
  if (!outbox_.is_connected()) {
    co_return errors::NotConnected();
  }
  if (begin.retried() && !launches_.can_relaunch()) {
    co_return errors::OldServer();
  }

  // Ask, and pass on what comes back.
  Progress progress(loop_);
  const uint64_t id = begin.id();
  const bool is_new = launches_.Open(RequestOf(begin, *task), begin.input_offset(),
                                     [&call, &progress](std::optional<proto::LaunchOut> out) {
                                       if (out) {
                                         call.Push(*std::move(out));
                                       } else {
                                         progress.is_lost = true;
                                       }
                                       progress.changed.Notify();
                                     });
  if (!is_new) {
    co_return errors::LaunchIsOpen(id);
  }
  const OpenLaunch open(launches_, id);
  spdlog::debug("helper asked for job={} node={} again={}", Printable(begin.job_id()), Printable(begin.node()),
                begin.again());
  co_await (AwaitLoss(progress) || Hear(call, launches_, id, progress));

  // Answer.
  if (!progress.is_lost) {
    co_return absl::OkStatus();
  }
  co_await call.Drain();
  co_return errors::SayItAgain();
}

}  // namespace sekisho::agent
