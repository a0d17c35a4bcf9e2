// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/request.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job_state.h"
#include "common/refusal.h"

namespace sekisho::jobmanager {
namespace {

using testing::HasSubstr;

const Here kHere{"siteA", "/O=Grid/CN=host/gate"};
const Caller kAlice{"/O=Grid/CN=Alice", "alice", "jobmanager-agent-long", "long", "192.0.2.1:1", false};

proto::RequestBody Body(const std::string& rsl = "&(executable=/bin/true)") {
  proto::RequestBody body;
  body.set_site("siteA");
  body.set_request_id("r1");
  body.set_service("jobmanager-agent-long");
  body.mutable_submit()->set_rsl(rsl);
  return body;
}

proto::SignedRequest Carry(const proto::RequestBody& body) {
  proto::SignedRequest request;
  request.set_body(body.SerializeAsString());
  return request;
}

absl::StatusOr<NewJob> Judge(const proto::RequestBody& body) {
  return JudgeSubmit(Carry(body), body, kAlice, kHere);
}

TEST(Request, IsReadIfItIsMeantForThisPlace) {
  EXPECT_TRUE(ReadRequest(Carry(Body()), kAlice, kHere).ok());
}

TEST(Request, IsRefusedIfItIsMeantForAnotherPlace) {
  const std::vector<std::pair<std::string, std::function<void(proto::RequestBody&)>>> changes = {
      {"site 'siteB'", [](auto& body) { body.set_site("siteB"); }},
      {"gatekeeper '/CN=other'", [](auto& body) { body.set_gatekeeper_subject("/CN=other"); }},
      {"account 'bob'", [](auto& body) { body.set_account("bob"); }},
      {"service 'jobmanager'", [](auto& body) { body.clear_service(); }},
  };
  for (const auto& [what, change] : changes) {
    proto::RequestBody body = Body();
    change(body);

    const auto read = ReadRequest(Carry(body), kAlice, kHere);

    EXPECT_EQ(read.status().code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(Message(read.status()), HasSubstr(what));
  }
}

TEST(Request, IsRefusedIfItCannotBeRead) {
  proto::SignedRequest garbage;
  garbage.set_body("\xff\xff\xff");
  EXPECT_FALSE(ReadRequest(garbage, kAlice, kHere).ok());
  EXPECT_FALSE(ReadRequest(proto::SignedRequest(), kAlice, kHere).ok());
  for (const char* id : {"", "a b", "x\ny"}) {
    proto::RequestBody body = Body();
    body.set_request_id(id);
    EXPECT_EQ(ReadRequest(Carry(body), kAlice, kHere).status().code(), absl::StatusCode::kInvalidArgument)
        << id;
  }
}

TEST(Request, BecomesAJobWhoseIdFollowsFromSiteSubjectAndRequest) {
  const auto job = Judge(Body("& (executable = /bin/echo) (arguments = a $(HOME)) (count=3)"));

  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->submitted.job_id(), JobIdFor("siteA", "/O=Grid/CN=Alice", "r1"));
  EXPECT_EQ(job->submitted.submitted().count(), 3);
  EXPECT_EQ(job->submitted.submitted().executable(), "/bin/echo");
  EXPECT_EQ(job->submitted.submitted().queue(), "long");
  EXPECT_EQ(job->submitted.submitted().account(), "alice");
  EXPECT_FALSE(job->is_dry_run);
}

TEST(Request, GivesTwoSpellingsOfOneRslOneText) {
  EXPECT_EQ(Judge(Body("&(executable=/bin/true)(count=2)"))->submitted.submitted().rsl(),
            Judge(Body("& (Executable = \"/bin/true\") (* twice *) (count = 2)"))->submitted.submitted().rsl());
}

TEST(Request, CarriesTheErrorNumberOfBadRsl) {
  const std::vector<std::pair<std::string, int>> table = {
      {"&(executable=", 48},
      {"", 42},
      {"&(count=2)", 81},
      {"&(executable=a)(count=many)", 14},
      {"&(executable=a)(count=0)", 14},
      {"&(executable=$(NOWHERE))", 39},
      {"&(executable=a)(jobtype=fast)", 19},
  };
  for (const auto& [rsl, number] : table) {
    const auto job = Judge(Body(rsl));

    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument) << rsl;
    EXPECT_EQ(GramCode(job.status()), number) << rsl << ": " << Message(job.status());
  }
}

TEST(Request, RefusesAnotherAccountQueueOrSeveralParts) {
  EXPECT_EQ(GramCode(Judge(Body("&(executable=a)(username=bob)")).status()), 167);
  EXPECT_TRUE(Judge(Body("&(executable=a)(username=alice)")).ok());
  EXPECT_EQ(GramCode(Judge(Body("&(executable=a)(queue=short)")).status()), 37);
  EXPECT_TRUE(Judge(Body("&(executable=a)(queue=long)")).ok());
  EXPECT_THAT(Message(Judge(Body("+(&(executable=a)(resourceManagerContact=x))"
                                 "(&(executable=b)(resourceManagerContact=y))")).status()),
              HasSubstr("multi-request"));
}

TEST(Request, KnowsADryRunFromBothPlaces) {
  proto::RequestBody body = Body();
  body.mutable_submit()->set_dry_run(true);

  EXPECT_TRUE(Judge(body)->is_dry_run);
  EXPECT_TRUE(Judge(Body("&(executable=a)(dryrun=yes)"))->is_dry_run);
}

}  // namespace
}  // namespace sekisho::jobmanager
