// SPDX-License-Identifier: Apache-2.0
// Calls whose message is so many bytes, of which nobody need understand anything.
#pragma once

#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "tests/support/program.h"

namespace sekisho::test {

inline grpc::Status CallWithBytes(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, size_t bytes,
                                  std::chrono::milliseconds patience) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience);
  context.set_wait_for_ready(true);
  grpc::Slice message(std::string(bytes, '\xff'));
  const grpc::ByteBuffer request(&message, 1);
  grpc::ByteBuffer reply;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, method, {}, &request, &reply, [&done](grpc::Status status) { done.set_value(std::move(status)); });
  return done.get_future().get();
}

// A program refuses messages over gRPC's 4 MiB, and keeps nothing of them.
inline void ExpectLargeMessagesRefused(const Program& program, const std::shared_ptr<grpc::Channel>& channel, const std::string& method) {
  // On a machine that others keep busy a keep-alive can run out under so many bytes: then once more, by a new connection.
  const auto call = [&](size_t bytes) {
    grpc::Status status;
    for (int attempt = 0; attempt < 3; ++attempt) {
      status = CallWithBytes(channel, method, bytes, std::chrono::seconds(60));
      if (status.error_code() != grpc::UNAVAILABLE) {
        break;
      }
    }
    return status;
  };
  call(5 << 20);
  const long before_kib = program.ResidentKib();

  for (int i = 0; i < 100; ++i) {
    const grpc::Status refused = call(5 << 20);
    ASSERT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED) << refused.error_message();
    ASSERT_THAT(refused.error_message(), testing::HasSubstr("larger than max (5242880 vs. 4194304)"));
  }

  const long grown_kib = program.ResidentKib() - before_kib;
  std::printf("100 messages of 5 MiB: %ld KiB more resident\n", grown_kib);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose own memory counts, too
  EXPECT_LT(grown_kib, 32 * 1024);
#endif
  EXPECT_EQ(call((4 << 20) - 1).error_code(), grpc::UNIMPLEMENTED);  // gRPC's word for what is heard, and is no request
}

}  // namespace sekisho::test
