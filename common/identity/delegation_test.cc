// SPDX-License-Identifier: Apache-2.0
#include "common/identity/delegation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/identity/proxy.h"
#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

using test::MakeProxy;
using test::TemporaryDirectory;
using test::TestCa;
using test::TestNow;
using ::testing::HasSubstr;

constexpr char kSpeaker[] = "/C=JP/O=Test/CN=host/head";

class DelegationTest : public ::testing::Test {
 protected:
  DelegationTest() : host_(ca_.IssueUser(kSpeaker)) {
    ca_.Install(directory_.path());
    request_ = MakeDelegationRequest()->der;
    offer_ = *MakeOffer("job", request_, host_, TestNow());
  }

  absl::Status Check(const std::string& job_id = "job", const std::string& speaker = kSpeaker) {
    return CheckOffer(offer_, job_id, speaker, **TrustStore::Load(directory_.path()), TestNow());
  }

  TemporaryDirectory directory_;
  TestCa ca_;
  Credential host_;
  std::string request_;
  Offer offer_;
};

TEST_F(DelegationTest, TheSpeakersWordIsBelieved) { EXPECT_TRUE(Check().ok()) << Check(); }

TEST_F(DelegationTest, AnotherKeyInItsPlaceIsRefused) {
  offer_.request = MakeDelegationRequest()->der;

  EXPECT_TRUE(absl::IsPermissionDenied(Check()));
}

TEST_F(DelegationTest, AnOldKeyIsRefusedAlsoUnderAnotherDate) {
  offer_ = *MakeOffer("job", request_, host_, TestNow() - std::chrono::minutes(16));
  EXPECT_THAT(Check().ToString(), HasSubstr("not now"));

  offer_.made = TestNow();
  EXPECT_THAT(Check().ToString(), HasSubstr("has not signed"));

  offer_ = *MakeOffer("job", request_, host_, TestNow() - std::chrono::minutes(9));
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(DelegationTest, AnotherJobsKeyIsRefused) { EXPECT_TRUE(absl::IsPermissionDenied(Check("other"))); }

TEST_F(DelegationTest, AnotherHostsWordIsRefused) {
  offer_ = *MakeOffer("job", request_, ca_.IssueUser("/C=JP/O=Test/CN=host/dmz"), TestNow());

  EXPECT_THAT(Check().ToString(), HasSubstr("saw that of /C=JP/O=Test/CN=host/dmz"));
}

TEST_F(DelegationTest, AHostOfAnUnknownAuthorityIsRefused) {
  offer_ = *MakeOffer("job", request_, TestCa("/C=JP/O=Other/CN=CA").IssueUser(kSpeaker), TestNow());

  EXPECT_FALSE(Check().ok());
}

TEST_F(DelegationTest, AProxyOfTheHostDoesNotSpeakForIt) {
  offer_ = *MakeOffer("job", request_, MakeProxy(host_), TestNow());

  EXPECT_TRUE(absl::IsPermissionDenied(Check()));
}

}  // namespace
}  // namespace sekisho::identity
