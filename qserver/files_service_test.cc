// SPDX-License-Identifier: Apache-2.0
// Who may reach a job's files.  What they are is tests/e2e/t2301's.
#include <gmock/gmock.h>

#include "qserver/server_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRsl[] = "&(executable=/bin/x)";

class FilesServiceTest : public ServerTest {
 protected:
  static proto::QueueRequest Access(const std::string& subject, const proto::RequestBody::FileAccess& access, int64_t age_s = 0) {
    proto::QueueRequest request = Request("files", subject);
    proto::RequestBody body;
    body.ParseFromString(request.request().body());
    body.set_time_ms(body.time_ms() - age_s * 1000);
    *body.mutable_files() = access;
    request.mutable_request()->set_body(body.SerializeAsString());
    return request;
  }
  grpc::Status Show(const proto::QueueRequest& request) {
    grpc::ClientContext context;
    const auto reader = queue_->Files(&context, request);
    proto::FilePiece piece;
    while (reader->Read(&piece)) {
    }
    return reader->Finish();
  }
  grpc::Status Write(const proto::QueueRequest& request) {
    grpc::ClientContext context;
    const auto stream = queue_->Upload(&context);
    proto::UploadRequest first;
    *first.mutable_write() = request.request();
    first.set_account(request.account());
    stream->Write(first);
    stream->WritesDone();
    proto::UploadReply reply;
    while (stream->Read(&reply)) {
    }
    return stream->Finish();
  }
  static proto::RequestBody::FileAccess List(const std::string& job_id) {
    proto::RequestBody::FileAccess access;
    access.set_job_id(job_id);
    access.mutable_list();
    return access;
  }
  static proto::RequestBody::FileAccess Put(const std::string& job_id) {
    proto::RequestBody::FileAccess access;
    access.set_job_id(job_id);
    access.mutable_write();
    return access;
  }
};

TEST_F(FilesServiceTest, AnotherSubjectOfTheAccountReachesNone) {
  const std::string job_id = SubmitOk("1", kRsl);
  const std::string none = "there is no job '" + job_id + "' here";

  for (const grpc::Status& status :
       {Show(Access("/CN=Mallory", List(job_id))), Write(Access("/CN=Mallory", Put(job_id)))}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(status.error_message(), none);
  }
  EXPECT_THAT(Show(Access("/CN=Alice", List(job_id))).error_message(), Not(HasSubstr(none)));
  EXPECT_THAT(Write(Access("/CN=Alice", Put(job_id))).error_message(), Not(HasSubstr(none)));
}

TEST_F(FilesServiceTest, OnlyTheAccountsOwnJobmanagerBringsAnAccess) {
  const std::string job_id = SubmitOk("1", kRsl);
  Restart(Jobmanager{"bob"});

  for (const grpc::Status& status :
       {Show(Access("/CN=Alice", List(job_id))), Write(Access("/CN=Alice", Put(job_id)))}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(status.error_message(), HasSubstr("the jobmanager of bob has nothing to do with jobs of alice"));
  }
}

TEST_F(FilesServiceTest, WhatIsStaleOrOfNoJobIsRefused) {
  const std::string job_id = SubmitOk("1", kRsl);

  EXPECT_EQ(Show(Access("/CN=Alice", List("nosuchjob"))).error_message(), "there is no job 'nosuchjob' here");
  EXPECT_THAT(Show(Access("/CN=Alice", List(job_id), 3600)).error_message(), HasSubstr("allowed are 300 s"));
  EXPECT_THAT(Show(Request("none", "/CN=Alice")).error_message(), HasSubstr("expected an access to a job's files"));
  EXPECT_THAT(Show(Access("/CN=Alice", Put(job_id))).error_message(), HasSubstr("expected to list or to read"));
  EXPECT_THAT(Write(Access("/CN=Alice", List(job_id))).error_message(), HasSubstr("expected to write"));
}

}  // namespace
}  // namespace sekisho::qserver
