// SPDX-License-Identifier: Apache-2.0
#include "qserver/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/refusal.h"
#include "tests/support/signed.h"
#include "tests/support/test_ca.h"

namespace sekisho::qserver {
namespace {

using ::testing::HasSubstr;

constexpr char kAlice[] = "/C=JP/O=Test/CN=Alice";
constexpr char kGatekeeper[] = "/C=JP/O=Test/CN=a-dmz";

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest()
      : alice_(test::MakeProxy(ca_.IssueUser(kAlice))),
        gridmap_(
            *identity::Gridmap::Parse("\"" + std::string(kAlice) + "\" alice,guest\n", "map")) {
    ca_.Install(directory_.path());
    chains_ = std::make_unique<identity::JudgedChains>(*identity::TrustStore::Load(directory_.path()),
                                                       identity::Purpose::kAny);
    rules_.site = "siteA";
    rules_.gatekeepers = {kGatekeeper};
    body_.set_site("siteA");
    body_.set_gatekeeper_subject(kGatekeeper);
    body_.set_request_id("r1");
    body_.set_time_ms(test::TestNow().time_since_epoch().count() * 1000);
    body_.set_service("jobmanager-agent");
    body_.mutable_submit()->set_rsl("&(executable=/bin/date)");
  }

  proto::QueueRequest Sign(const identity::Credential& signer) {
    proto::QueueRequest request;
    request.set_account("alice");
    *request.mutable_request() = test::Signed(body_, signer);
    return request;
  }
  absl::StatusOr<Verified> VerifyNow(const proto::QueueRequest& request) {
    return Verify(request, rules_, *chains_, gridmap_, test::TestNow());
  }
  std::string Refused(const absl::Status& status) {
    EXPECT_FALSE(status.ok());
    return Message(status);
  }
  absl::StatusOr<Admitted> Admit(const std::string& rsl) {
    body_.mutable_submit()->set_rsl(rsl);
    const proto::QueueRequest request = Sign(alice_);
    ASSIGN_OR_RETURN(const Verified verified, VerifyNow(request));
    return Describe(verified, request.request(), rules_,
                    [](const std::string& name) -> absl::StatusOr<Account> {
                      return Account{"/home/" + name, name == "guest" ? 0u : 1000u};
                    });
  }

  test::TestCa ca_;
  test::TemporaryDirectory directory_;
  identity::Credential alice_;
  identity::Gridmap gridmap_;
  std::unique_ptr<identity::JudgedChains> chains_;
  AdmissionRules rules_;
  proto::RequestBody body_;
};

TEST_F(AdmissionTest, AcceptsWhatItsUserHasSignedForThisSite) {
  const absl::StatusOr<Verified> verified = VerifyNow(Sign(alice_));

  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->identity.subject, kAlice);
  EXPECT_EQ(verified->account, "alice");
  EXPECT_EQ(verified->job_id.size(), 13u);
}

TEST_F(AdmissionTest, RefusesAChangedBody) {
  proto::QueueRequest request = Sign(alice_);
  body_.mutable_submit()->set_rsl("&(executable=/bin/evil)");
  request.mutable_request()->set_body(body_.SerializeAsString());

  EXPECT_THAT(Refused(VerifyNow(request).status()), HasSubstr("signature"));
}

TEST_F(AdmissionTest, RefusesASignerOfAnotherAuthority) {
  const test::TestCa other("/C=JP/O=Evil/CN=CA");

  EXPECT_FALSE(VerifyNow(Sign(test::MakeProxy(other.IssueUser(kAlice)))).ok());
}

TEST_F(AdmissionTest, RefusesARequestForAnotherSiteOrGatekeeper) {
  body_.set_site("siteB");
  EXPECT_THAT(Refused(VerifyNow(Sign(alice_)).status()),
              HasSubstr("signed for site siteB, this is siteA"));

  body_.set_site("");
  body_.set_gatekeeper_subject("/C=JP/O=Test/CN=b-dmz");
  EXPECT_THAT(Refused(VerifyNow(Sign(alice_)).status()),
              HasSubstr("b-dmz, which is not this site's"));
}

TEST_F(AdmissionTest, RefusesAMappingThatDiffersAndNamesBoth) {
  proto::QueueRequest request = Sign(alice_);
  request.set_account("bob");

  EXPECT_THAT(Refused(VerifyNow(request).status()),
              HasSubstr("is account bob outside the firewall but alice inside"));
}

TEST_F(AdmissionTest, RefusesAJobWhoseTasksTogetherAreTooLargeToSend) {
  rules_.rsl_bytes_max = 1 << 20;
  const std::string large(600'000, 'x');
  EXPECT_TRUE(Admit("&(executable=/bin/true)(count=100)(arguments=" + large + ")").ok());
  EXPECT_THAT(Refused(Admit("&(executable=/bin/true)(count=2000)(arguments=" + large + ")").status()),
              HasSubstr("2000 tasks with 600009 bytes"));
}

TEST_F(AdmissionTest, RefusesAnUnmappedSubject) {
  const identity::Credential eve = test::MakeProxy(ca_.IssueUser("/C=JP/O=Test/CN=Eve"));

  EXPECT_THAT(Refused(VerifyNow(Sign(eve)).status()), HasSubstr("has no account inside"));
}

TEST_F(AdmissionTest, RefusesALimitedProxyUnlessTheSiteAllowsIt) {
  test::ProxyShape limited;
  limited.language = "1.3.6.1.4.1.3536.1.1.1.9";
  const identity::Credential proxy = test::MakeProxy(ca_.IssueUser(kAlice), limited);

  EXPECT_FALSE(VerifyNow(Sign(proxy)).ok());
  rules_.accept_limited = true;
  EXPECT_TRUE(VerifyNow(Sign(proxy)).ok());
}

TEST_F(AdmissionTest, JudgesFreshnessOnBothSides) {
  const absl::StatusOr<Verified> verified = VerifyNow(Sign(alice_));
  ASSERT_TRUE(verified.ok());

  EXPECT_TRUE(CheckFresh(*verified, rules_, test::TestNow() + std::chrono::seconds(299)).ok());
  EXPECT_FALSE(CheckFresh(*verified, rules_, test::TestNow() + std::chrono::hours(1)).ok());
  EXPECT_FALSE(CheckFresh(*verified, rules_, test::TestNow() - std::chrono::hours(1)).ok());
}

TEST_F(AdmissionTest, EvaluatesTheSitesVariables) {
  const absl::StatusOr<Admitted> admitted = Admit(
      "&(executable=$(HOME)/bin/x)(arguments=$(LOGNAME) $(GLOBUS_ID) $(GLOBUS_GATEKEEPER_HOST))");

  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(admitted->submitted.executable(), "/home/alice/bin/x");
  const auto job = rsl::ParseAndDescribe(admitted->submitted.rsl(), {});
  ASSERT_TRUE(job.ok());
  EXPECT_THAT(job->arguments, ::testing::ElementsAre("alice", kAlice, "a-dmz"));
}

TEST_F(AdmissionTest, TakesTheQueueFromTheServiceUnlessTheJobNamesOne) {
  body_.set_service("jobmanager-agent-long");
  EXPECT_EQ(Admit("&(executable=/bin/x)")->demand.queue(), "long");
  EXPECT_EQ(Admit("&(executable=/bin/x)(queue=short)")->demand.queue(), "short");
}

TEST_F(AdmissionTest, RefusesWithGramsNumber) {
  rules_.projects = {"physics"};
  rules_.wall_time_max_s = 3600;
  EXPECT_EQ(GramCode(Admit("&(executable=/bin/x)(count=none)").status()), 14);
  EXPECT_EQ(GramCode(Admit("&(executable=/bin/x)(project=art)").status()), 38);
  EXPECT_EQ(GramCode(Admit("&(executable=/bin/x)(max_wall_time=61)").status()), 102);
  EXPECT_EQ(GramCode(Admit("&(executable=/bin/x)(username=bob)").status()), 167);
  EXPECT_EQ(GramCode(Admit("&(executable=$(NOPE))").status()), 39);
  EXPECT_EQ(GramCode(Admit("&(executable=/bin/x)(savejobdescription=yes)").status()), 1);
  EXPECT_TRUE(
      Admit("&(executable=/bin/x)(project=physics)(max_wall_time=60)(username=alice)").ok());
}

TEST_F(AdmissionTest, LimitsADescriptionAndWhatTheAllocatorIsAskedToCompare) {
  rules_.rsl_bytes_max = 10'000;
  std::string names;
  for (int i = 0; i < 300; ++i) {
    names += " n" + std::to_string(i);
  }
  EXPECT_THAT(Refused(Admit("&(executable=/bin/x)(node !=" + names + ")").status()),
              HasSubstr("have 300 values"));
  EXPECT_TRUE(Admit("&(executable=/bin/x)(node != n1 n2)").ok());
  EXPECT_THAT(Refused(Admit("&(executable=/bin/x)(arguments=" + std::string(10'000, 'a') + ")").status()),
              HasSubstr("at most 10000"));
}

TEST_F(AdmissionTest, RunsNothingAsRoot) {
  body_.set_account("guest");
  proto::QueueRequest request = Sign(alice_);
  request.set_account("guest");
  const absl::StatusOr<Verified> verified = VerifyNow(request);
  ASSERT_TRUE(verified.ok());

  EXPECT_THAT(Refused(Describe(*verified, request.request(), rules_,
                               [](const std::string&) {
                                 return Account{"/root", 0};
                               })
                          .status()),
              HasSubstr("never run as root"));
}

TEST_F(AdmissionTest, LimitsWhatOneSubjectMayKeepHere) {
  Admitted admitted;
  admitted.submitted.set_rsl(std::string(1000, 'x'));
  rules_.jobs_max = 2;
  rules_.kept_bytes_max = 10'000;

  EXPECT_TRUE(CheckRoom({1, 8'000}, admitted, rules_).ok());
  EXPECT_THAT(Message(CheckRoom({2, 0}, admitted, rules_)), HasSubstr("2 jobs of yours"));
  EXPECT_THAT(Message(CheckRoom({1, 9'500}, admitted, rules_)), HasSubstr("descriptions"));
}

}  // namespace
}  // namespace sekisho::qserver
