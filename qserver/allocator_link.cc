// SPDX-License-Identifier: Apache-2.0
#include "qserver/allocator_link.h"

#include "common/rpc_client.h"
#include "common/rpc_window.h"
#include "proto/allocation.grpc.pb.h"

namespace sekisho::qserver {
namespace {

using Async = proto::Allocator::StubInterface::async_interface;

class GrpcLink final : public AllocatorLink {
 public:
  GrpcLink(Loop& loop, const std::string& target) : loop_(loop) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    rpc::SetWindow(arguments);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    stub_ = proto::Allocator::NewStub(
        grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
  }

  awaitable<absl::StatusOr<proto::DecideReply>> Decide(proto::DecideRequest request) override {
    return rpc::Call<Async, proto::DecideRequest, proto::DecideReply>(
        loop_, stub_->async(), &Async::Decide, std::move(request), Options());
  }
  awaitable<absl::StatusOr<proto::InventoryReply>> Inventory() override {
    return rpc::Call<Async, proto::InventoryRequest, proto::InventoryReply>(
        loop_, stub_->async(), &Async::Inventory, {}, Options());
  }

 private:
  static rpc::CallOptions Options() {
    rpc::CallOptions options;
    options.timeout = std::chrono::seconds(5);
    options.wait_for_ready = true;
    return options;
  }

  Loop& loop_;
  std::unique_ptr<proto::Allocator::Stub> stub_;
};

}  // namespace

std::unique_ptr<AllocatorLink> AllocatorLink::Dial(Loop& loop, const std::string& target) {
  return std::make_unique<GrpcLink>(loop, target);
}

}  // namespace sekisho::qserver
