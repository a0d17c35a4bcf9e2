// SPDX-License-Identifier: Apache-2.0
// Who is taken for a node.
#include <gtest/gtest.h>

#include "qserver/server_fixture.h"

namespace sekisho::qserver {
namespace {

TEST_F(ServerTest, TakesNobodyForANodeBeforeTheAllocatorHasNamedThem) {
  allocator_.is_silent = true;
  EXPECT_EQ(Agent(*server_, "n1").Next().kind_case(), proto::ServerMessage::KIND_NOT_SET);

  allocator_.is_silent = false;
  Attach("n1");
  allocator_.is_silent = true;
  Restart();
  Attach("n1");  // as the allocator said before the restart
  EXPECT_EQ(Agent(*server_, "n3").Next().kind_case(), proto::ServerMessage::KIND_NOT_SET);
}

TEST_F(ServerTest, EndsAStreamThatSaysNothing) {
  const auto nodes = proto::Nodes::NewStub(server_->Dial());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));

  EXPECT_EQ(nodes->Attach(&context)->Finish().error_code(), grpc::CANCELLED);
}

}  // namespace
}  // namespace sekisho::qserver
