// SPDX-License-Identifier: Apache-2.0
#include "client/world/signed_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/refusal.h"
#include "tests/support/signed.h"
#include "tests/support/test_ca.h"

namespace sekisho::client {
namespace {

using test::TestNow;
using testing::HasSubstr;

constexpr char kTaro[] = "/C=JP/O=Test/CN=Taro";
constexpr char kWorld[] = "world-0123456789abcdef0123456789abcdef";

class SignedPartTest : public ::testing::Test {
 protected:
  SignedPartTest() : taro_(test::MakeProxy(ca_.IssueUser(kTaro))) {
    ca_.Install(directory_.path());
    signers_.emplace(*identity::TrustStore::Load(directory_.path()), identity::Purpose::kAny);
    body_.mutable_submit()->set_rsl("&(executable=/bin/a)");
    body_.mutable_submit()->mutable_charter()->set_world(kWorld);
    body_.mutable_submit()->mutable_charter()->set_part(1);
  }

  proto::SignedRequest Signed(const identity::Credential& signer) const { return test::Signed(body_, signer); }

  absl::StatusOr<proto::RequestBody> Judge(const proto::SignedRequest& shown, int part = 1) {
    return JudgeSignedPart(shown, kWorld, part, kTaro, *signers_, TestNow());
  }

  test::TemporaryDirectory directory_;
  test::TestCa ca_;
  identity::Credential taro_;
  std::optional<identity::JudgedChains> signers_;
  proto::RequestBody body_;
};

TEST_F(SignedPartTest, IsWhatItsUserHasSigned) {
  const auto part = Judge(Signed(taro_));

  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->submit().rsl(), "&(executable=/bin/a)");
}

TEST_F(SignedPartTest, IsNotWhatWasChangedOnTheWay) {
  proto::SignedRequest shown = Signed(taro_);
  body_.mutable_submit()->set_rsl("&(executable=/bin/a)(file_stage_in=(client:///home/taro/.ssh/id_rsa x))");
  shown.set_body(body_.SerializeAsString());

  const auto part = Judge(shown);

  EXPECT_EQ(part.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(part.status().message()), HasSubstr("is not what you have signed"));
  EXPECT_FALSE(Judge(proto::SignedRequest()).ok());
}

TEST_F(SignedPartTest, IsNotAnothersNorOfAnotherPlace) {
  const auto others = Judge(Signed(ca_.IssueUser("/C=JP/O=Test/CN=Mallory")));
  const auto elsewhere = Judge(Signed(taro_), 0);
  body_.mutable_submit()->mutable_charter()->set_world("world-1");
  const auto of_another = Judge(Signed(taro_));
  body_.mutable_submit()->clear_charter();
  const auto plain = Judge(Signed(taro_));

  EXPECT_THAT(std::string(others.status().message()), HasSubstr("it is signed by /C=JP/O=Test/CN=Mallory"));
  EXPECT_THAT(std::string(elsewhere.status().message()), HasSubstr("it is part 1 of"));
  EXPECT_THAT(std::string(of_another.status().message()), HasSubstr("it is part 1 of world-1"));
  EXPECT_THAT(std::string(plain.status().message()), HasSubstr("it is no part's submission"));
}

}  // namespace
}  // namespace sekisho::client
