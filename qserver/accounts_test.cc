// SPDX-License-Identifier: Apache-2.0
// What the jobmanager of one account may ask: of others it learns nothing.
#include <gmock/gmock.h>

#include "qserver/server_fixture.h"

namespace sekisho::qserver {
namespace {

class AccountsTest : public ServerTest {
 protected:
  proto::JobStatus StatusOf(const std::string& job_id) {
    grpc::ClientContext context;
    proto::StatusRequest request;
    request.add_job_id(job_id);
    proto::StatusReply reply;
    EXPECT_TRUE(queue_->Status(&context, request, &reply).ok());
    return reply.job_size() == 1 ? reply.job(0) : proto::JobStatus();
  }
  grpc::Status Feed(const std::string& job_id) {
    grpc::ClientContext context;
    proto::InputReply reply;
    const auto writer = queue_->Input(&context, &reply);
    proto::InputChunk chunk;
    chunk.set_job_id(job_id);
    writer->Write(chunk);
    return writer->Finish();
  }
  grpc::Status Read(const std::string& job_id) {
    grpc::ClientContext context;
    proto::OutputRequest request;
    request.set_job_id(job_id);
    const auto reader = queue_->Output(&context, request);
    proto::OutputChunk chunk;
    while (reader->Read(&chunk)) {
    }
    return reader->Finish();
  }
};

TEST_F(AccountsTest, OneAccountsJobmanagerHasNothingToDoWithAnothersJobs) {
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)", /*has_input=*/true);
  Restart(Jobmanager{"bob"});

  proto::SubmitReply reply;
  const grpc::Status submitted = Submit("r2", "&(executable=/bin/x)", reply);
  EXPECT_EQ(submitted.error_code(), grpc::PERMISSION_DENIED);
  EXPECT_EQ(submitted.error_message(), "the jobmanager of bob has nothing to do with jobs of alice");
  EXPECT_EQ(Cancel(job, "/CN=Alice").error_code(), grpc::PERMISSION_DENIED);
  grpc::ClientContext context;
  proto::EventsRequest events;
  events.set_account("alice");
  EXPECT_EQ(queue_->Events(&context, events)->Finish().error_code(), grpc::PERMISSION_DENIED);
  EXPECT_EQ(Read(job).error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(Feed(job).error_code(), grpc::NOT_FOUND);
  proto::JobStatus never = StatusOf("aaaaaaaaaaaaa");
  never.set_job_id(job);
  EXPECT_EQ(StatusOf(job).SerializeAsString(), never.SerializeAsString());

  Restart(Jobmanager{"alice"});
  EXPECT_EQ(StatusOf(job).state(), proto::PENDING);
  EXPECT_TRUE(Cancel(job, "/CN=Alice").ok());
}

}  // namespace
}  // namespace sekisho::qserver
