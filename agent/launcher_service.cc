// SPDX-License-Identifier: Apache-2.0
#include "agent/launcher_service.h"

#include <array>

#include <asio/experimental/awaitable_operators.hpp>

#include "agent/errors.h"
#include "common/log.h"

namespace sekisho::agent {
namespace {

using Call = rpc::Duplex<proto::LaunchIn, proto::LaunchOut>;
using asio::experimental::awaitable_operators::operator||;

constexpr std::chrono::seconds kBeginWithin{10};
constexpr uint64_t kInputInFlightMost = 256 << 10;  // then sekisho-rsh waits

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

// What has come back for a launcher.
struct Progress {
  explicit Progress(Loop& loop) : changed(loop) {}
  Signal changed;
  bool has_ended = false;
  std::array<uint64_t, 2> sent = {0, 0};   // bytes of the helper's stdout and stderr
  std::array<uint64_t, 2> taken = {0, 0};  // of them: by the launcher
};

// Until the helper has ended.  What the launcher has taken is acknowledged: the rest waits on the helper's
// node, in its spool.
awaitable<void> AwaitEnd(Call& call, Launches& launches, uint64_t id, Progress& progress) {
  while (!progress.has_ended) {
    co_await progress.changed.Wait();
    const std::array<uint64_t, 2> sent = progress.sent;
    if (sent == progress.taken) {
      continue;
    }
    const bool is_there = co_await call.Drain();
    if (!is_there) {
      continue;  // the call is being cancelled
    }
    for (const auto stream : {proto::OutputChunk::STDOUT, proto::OutputChunk::STDERR}) {
      const size_t i = stream == proto::OutputChunk::STDERR;
      if (sent[i] > progress.taken[i]) {
        launches.OutputTaken(id, stream, sent[i]);
      }
    }
    progress.taken = sent;
  }
}

// Input flows as the helper takes it.
awaitable<void> ForwardInput(Call& call, Launches& launches, uint64_t id, Progress& progress) {
  proto::LaunchIn in;
  for (;;) {
    const bool is_read = co_await call.Read(in);
    if (!is_read) {
      break;
    }
    if (in.has_data() || in.has_end()) {
      launches.Input(id, std::move(*in.mutable_data()), in.end());
    }
    while (launches.InputInFlight(id) > kInputInFlightMost) {
      co_await progress.changed.Wait();
    }
  }
  launches.Input(id, "", true);
  for (;;) {  // the launcher has no more to say; only the helper's end ends the call
    co_await progress.changed.Wait();
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
  if (is_read == nullptr || !*is_read || !first.has_begin()) {
    co_return errors::NoBegin();
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
  Progress progress(loop_);
  const uint64_t id = launches_.Open(std::move(launch), [&call, &progress](proto::LaunchOut out) {
    progress.has_ended = progress.has_ended || out.has_ended();
    if (out.has_output()) {
      progress.sent[out.output().stream() == proto::OutputChunk::STDERR] += out.output().data().size();
    }
    if (out.kind_case() != proto::LaunchOut::KIND_NOT_SET) {
      call.Push(std::move(out));
    }
    progress.changed.Notify();
  });
  const OpenLaunch open(launches_, id);
  spdlog::debug("helper asked for job={} node={}", Printable(begin.job_id()),
                Printable(begin.node()));

  // Input flows until the helper has ended, and then no more.
  co_await (AwaitEnd(call, launches_, id, progress) ||
            ForwardInput(call, launches_, id, progress));
  co_await call.Drain();
  co_return absl::OkStatus();
}

}  // namespace sekisho::agent
