// SPDX-License-Identifier: Apache-2.0
// tests/data/client-N: what a client of an earlier version has signed.  Each stays for ever.
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job_state.h"
#include "qserver/admission.h"

namespace sekisho::qserver {
namespace {

constexpr char kAlice[] = "/O=Sekisho Lab/OU=People/CN=Alice Liddell";

class StoredRequestsTest : public ::testing::Test {
 protected:
  StoredRequestsTest() {
    rules_.site = "siteA";
    rules_.gatekeepers = {"/O=Sekisho Lab/CN=a-dmz"};
  }

  // As it was judged in its own hour.
  absl::StatusOr<Verified> Read(const std::string& name) {
    std::ifstream file(folder_ + "/" + name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    request_.set_account("alice");
    proto::RequestBody body;
    EXPECT_TRUE(request_.mutable_request()->ParseFromString(bytes) && body.ParseFromString(request_.request().body()));
    const identity::Time then{std::chrono::seconds(body.time_ms() / 1000)};
    ASSIGN_OR_RETURN(Verified verified, Verify(request_, rules_, chains_, gridmap_, then));
    RETURN_IF_ERROR(CheckFresh(verified, rules_, then));
    return verified;
  }

  const std::string folder_ = std::string(std::getenv("SEKISHO_SOURCE")) + "/tests/data/client-1";
  identity::JudgedChains chains_{*identity::TrustStore::Load(folder_ + "/certificates"), identity::Purpose::kAny};
  identity::Gridmap gridmap_ = *identity::Gridmap::Parse("\"" + std::string(kAlice) + "\" alice\n", "map");
  AdmissionRules rules_;
  proto::QueueRequest request_;
};

TEST_F(StoredRequestsTest, ASubmissionIsAdmitted) {
  const absl::StatusOr<Verified> verified = Read("submit.request");
  ASSERT_TRUE(verified.ok()) << verified.status();

  const auto admitted = Describe(*verified, request_.request(), rules_, [](const std::string& name) {
    return absl::StatusOr<Account>(Account{"/home/" + name, 1000});
  });

  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(verified->identity.subject, kAlice);
  EXPECT_EQ(verified->job_id, JobIdFor("siteA", kAlice, "earlier-1"));
  EXPECT_THAT(admitted->submitted.rsl(), ::testing::HasSubstr("\"two words\""));
  EXPECT_EQ(admitted->demand.processes(), 2);
}

TEST_F(StoredRequestsTest, ItsCommandsAreUnderstood) {
  for (const char* name : {"suspend.request", "cancel.request"}) {
    const absl::StatusOr<Verified> verified = Read(name);
    ASSERT_TRUE(verified.ok()) << name << ": " << verified.status();
    EXPECT_EQ(verified->body.signal().job_id(), "uh6q453x2v5xk");
    EXPECT_EQ(verified->body.signal().number(), name[0] == 's' ? 2 : 1);
  }
}

TEST_F(StoredRequestsTest, ItsDelegationIsUnderstood) {
  const absl::StatusOr<Verified> verified = Read("delegate.request");

  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->body.delegate().job_id(), "uh6q453x2v5xk");
  EXPECT_GE(verified->body.delegate().chain_size(), 2);
}

}  // namespace
}  // namespace sekisho::qserver
