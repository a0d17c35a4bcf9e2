// SPDX-License-Identifier: Apache-2.0
// A call whose message is so many bytes, of which nobody need understand anything.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

namespace sekisho::test {

inline grpc::Status CallWithBytes(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, size_t bytes,
                                  std::chrono::milliseconds patience) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience);
  grpc::Slice message(std::string(bytes, '\xff'));
  const grpc::ByteBuffer request(&message, 1);
  grpc::ByteBuffer reply;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, method, {}, &request, &reply, [&done](grpc::Status status) { done.set_value(std::move(status)); });
  return done.get_future().get();
}

}  // namespace sekisho::test
