// SPDX-License-Identifier: Apache-2.0
#include "agent/session.h"

#include <random>

#include "common/back_off.h"
#include "common/call_metadata.h"
#include "common/daemon.h"
#include "common/log.h"
#include "common/refusal.h"
#include "proto/nodes.grpc.pb.h"

namespace sekisho::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLoadInterval = 10s;
constexpr std::chrono::milliseconds kLoadPause = 1s;  // however many tasks come and go: the kernel counts every 5 s

proto::AgentMessage LoadMessage() {
  const HostLoad load = ReadHostLoad();
  proto::AgentMessage message;
  message.mutable_load()->set_load(load.load);
  message.mutable_load()->set_free_memory_mb(load.free_memory_mb);
  return message;
}

}  // namespace

Session::Session(Loop& loop, std::shared_ptr<grpc::Channel> channel, Outbox& outbox, Tasks& tasks,
                 Launches& launches, Settings settings)
    : loop_(loop),
      channel_(std::move(channel)),
      stub_(proto::Nodes::NewStub(channel_)),
      outbox_(outbox),
      tasks_(tasks),
      launches_(launches),
      settings_(std::move(settings)),
      load_changed_(loop),
      stopping_(loop),
      hello_due_(loop) {}

Session::~Session() = default;

proto::AgentMessage Session::Hello() const {
  proto::AgentMessage message;
  proto::AgentMessage::Hello& hello = *message.mutable_hello();
  hello.set_node(settings_.node);
  hello.set_version(kVersion);
  hello.set_boot_id(settings_.facts.boot_id);
  hello.set_processors(settings_.facts.processors);
  hello.set_memory_mb(settings_.facts.memory_mb);
  hello.set_architecture(settings_.facts.architecture);
  hello.set_os(settings_.facts.os);
  if (settings_.pilot) {
    *hello.mutable_pilot() = *settings_.pilot;
  }
  hello.set_relaunches(true);
  tasks_.FillHello(hello);
  return message;
}

// For whom it speaks, before its first message is read.
rpc::CallOptions Session::Introduction() const {
  rpc::CallOptions options;
  if (settings_.pilot) {
    options.metadata.emplace_back(metadata::kPilot, settings_.pilot->job_id() + ":" + settings_.pilot->token());
  } else {
    options.metadata.emplace_back(metadata::kNode, settings_.node);
  }
  return options;
}

awaitable<void> Session::Run() {
  std::minstd_rand random(std::random_device{}());
  BackOff back_off(settings_.first_delay, settings_.longest_delay);
  std::string said;
  while (!is_stopped_) {
    const absl::Status status = co_await Attend();
    if (settings_.on_lost) {
      settings_.on_lost(status);
    }
    if (is_stopped_) {
      break;
    }
    const std::string why = settings_.why ? settings_.why() : "";
    const std::string kind = fmt::format("{} {}", int(status.code()), why.substr(0, why.find(' ')));
    if (was_attached_ || back_off.is_first() || kind != said) {  // one line per outage, and reason
      said = kind;
      spdlog::warn("no connection to the queue server: {}{}{}", Printable(Message(status)),
                   why.empty() ? "" : "; ", why);
    }
    co_await stopping_.WaitFor(back_off.After(was_attached_, random()));
  }
}

awaitable<absl::Status> Session::Attend() {
  was_attached_ = false;
  auto call = rpc::Start<Call>(loop_, Introduction(), [this](Call& starting) {
    stub_->async()->Attach(&starting.context(), &starting);
  });
  call_ = call;
  call->Push(Hello());
  proto::ServerMessage message;
  if (!co_await call->Read(message)) {
    co_return co_await call->Finish();
  }
  if (!message.has_welcome()) {
    call->Cancel();
    co_return absl::InternalError("the queue server's first message is no Welcome");
  }
  was_attached_ = true;
  spdlog::info("attached to the queue server of site {}", Printable(message.welcome().site()));
  launches_.OnWelcome(message.welcome());
  outbox_.Connect([call](proto::AgentMessage sent) { call->Push(std::move(sent)); });
  tasks_.OnWelcome(message.welcome());
  if (settings_.on_attached) {
    settings_.on_attached();
  }
  outbox_.Push(LoadMessage());
  while (co_await call->Read(message)) {
    if (!launches_.Handle(message)) {
      tasks_.Handle(message);
    }
    if (settings_.on_message) {
      settings_.on_message(message);
    }
  }
  outbox_.Disconnect();
  launches_.OnLost();
  co_return co_await call->Finish();
}

void Session::Stop() {
  is_stopped_ = true;
  stopping_.Notify();
  load_changed_.Notify();
  hello_due_.Notify();
  if (call_) {
    call_->Cancel();
  }
}

awaitable<void> Session::RepeatHello() {
  while (!is_stopped_) {
    co_await hello_due_.WaitFor(settings_.hello_every);
    if (!is_stopped_ && outbox_.is_connected()) {
      outbox_.Push(Hello());
      tasks_.AnnounceAll();
    }
  }
}

awaitable<void> Session::ReportLoad() {
  using Clock = std::chrono::steady_clock;
  auto check_at = Clock::now() + kLoadInterval;  // also where tasks come and go all the time
  while (!is_stopped_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(check_at - Clock::now());
    const bool is_told = co_await load_changed_.WaitFor(left);
    if (is_told && !is_stopped_) {
      co_await stopping_.WaitFor(kLoadPause);  // what changes meanwhile is in it
    }
    if (Clock::now() >= check_at && !is_stopped_) {
      tasks_.Check();
      check_at = Clock::now() + kLoadInterval;
    }
    outbox_.Push(LoadMessage());
  }
}

}  // namespace sekisho::agent
