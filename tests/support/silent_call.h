// SPDX-License-Identifier: Apache-2.0
// A call that sends its headers and then nothing: whatever answers it has not read a message.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

namespace sekisho::test {

// DEADLINE_EXCEEDED if the server waits for a message.
inline grpc::Status CallWithoutAMessage(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                                        std::chrono::milliseconds patience,
                                        const std::pair<std::string, std::string>& metadata = {}) {
  struct Call final : grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
    void OnReadDone(bool ok) override {
      if (ok) {
        StartRead(&reply);
      }
    }
    void OnDone(const grpc::Status& status) override { done.set_value(status); }

    grpc::ClientContext context;
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> done;
  } call;
  grpc::GenericStub stub(channel);
  call.context.set_deadline(std::chrono::system_clock::now() + patience);
  call.context.set_wait_for_ready(true);
  if (!metadata.first.empty()) {
    call.context.AddMetadata(metadata.first, metadata.second);
  }
  stub.PrepareBidiStreamingCall(&call.context, method, {}, &call);
  call.StartRead(&call.reply);
  call.StartCall();
  return call.done.get_future().get();
}

}  // namespace sekisho::test
