// SPDX-License-Identifier: Apache-2.0
#include "qserver/inventory_watch.h"

#include "common/rpc_client.h"
#include "common/rpc_window.h"

namespace sekisho::qserver {
namespace {

constexpr std::chrono::milliseconds kRedial{500};

std::shared_ptr<grpc::Channel> Dial(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  rpc::SetWindow(arguments);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

InventoryWatch::InventoryWatch(Loop& loop, const std::string& target, std::function<void()> on_change)
    : loop_(loop), on_change_(std::move(on_change)), stub_(proto::Allocator::NewStub(Dial(target))) {}

awaitable<void> InventoryWatch::Run() {
  const proto::InventoryRequest request;
  for (;;) {
    auto call = rpc::Start<rpc::ClientReader<proto::InventoryReply>>(
        loop_, {.wait_for_ready = true},
        [&](auto& started) { stub_->async()->WatchInventory(&started.context(), &request, &started); });
    proto::InventoryReply reply;
    while (co_await call->Read(reply)) {
      inventory_ = std::move(reply);
      is_current_ = true;
      on_change_();
    }
    (co_await call->Finish()).IgnoreError();  // the scheduler says in the log that it does not answer
    if (std::exchange(is_current_, false)) {
      on_change_();
    }
    co_await Sleep(loop_, kRedial);
  }
}

}  // namespace sekisho::qserver
