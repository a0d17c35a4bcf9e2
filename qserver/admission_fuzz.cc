// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of a request that a known user has signed well: they are judged, and if they are a submission,
// understood as far as they go.  Once as they are, and once with what keeps most of them from getting further put right.
#include "qserver/admission.h"

#include <cstdint>
#include <memory>

#include "common/refusal.h"
#include "tests/support/test_ca.h"

namespace sekisho::qserver {
namespace {

constexpr char kAlice[] = "/C=JP/O=Test/CN=Alice";
constexpr char kGatekeeper[] = "/C=JP/O=Test/CN=a-dmz";

struct World {
  test::TestCa ca;
  identity::Credential alice = test::MakeProxy(ca.IssueUser(kAlice));
  identity::Gridmap gridmap = *identity::Gridmap::Parse("\"" + std::string(kAlice) + "\" alice\n", "map");
  std::unique_ptr<identity::JudgedChains> chains;
  AdmissionRules rules;

  World() {
    const test::TemporaryDirectory directory;
    ca.Install(directory.path());
    chains = std::make_unique<identity::JudgedChains>(*identity::TrustStore::Load(directory.path()), identity::Purpose::kAny);
    rules.site = "siteA";
    rules.gatekeepers = {kGatekeeper};
    rules.administrators = {kAlice};
    rules.staging.roots = {"/scratch"};
  }

  void Understand(const Verified& verified, const proto::SignedRequest& request) {
    const auto find_account = [](const std::string& name) -> absl::StatusOr<Account> {
      return Account{"/home/" + name, 1000};
    };
    const auto admitted = Describe(verified, request, rules, find_account);
    CHECK(admitted.ok() || !Message(admitted.status()).empty());
    if (admitted.ok()) {
      CHECK(admitted->job_id == verified.job_id);
      CheckLife(verified, *admitted, rules, test::TestNow()).IgnoreError();
      CheckRoom({}, *admitted, rules).IgnoreError();
    }
  }

  void Judge(const std::string& body) {
    const identity::SignedRequest made = *identity::Sign(body, alice);
    proto::QueueRequest request;
    request.set_account("alice");
    request.mutable_request()->set_body(made.body);
    request.mutable_request()->set_signature(made.signature);
    request.mutable_request()->mutable_chain()->Assign(made.chain.begin(), made.chain.end());
    const auto verified = Verify(request, rules, *chains, gridmap, test::TestNow());
    if (!verified.ok()) {
      return;
    }
    CHECK(verified->account == "alice" && verified->identity.subject == kAlice);
    CheckFresh(*verified, rules, test::TestNow()).IgnoreError();
    CheckAdministrator(*verified, rules, test::TestNow()).IgnoreError();
    if (verified->body.has_submit()) {
      Understand(*verified, request.request());
    }
    for (int i = 0; i < verified->body.submit_many().job_size(); ++i) {
      Understand(OneOfMany(*verified, i, rules), request.request());
    }
  }
};

}  // namespace
}  // namespace sekisho::qserver

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sekisho;
  static auto& world = *new qserver::World;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  world.Judge(bytes);
  proto::RequestBody body;
  if (body.ParseFromString(bytes)) {
    body.set_site("siteA");
    body.set_gatekeeper_subject(qserver::kGatekeeper);
    body.clear_account();
    body.set_request_id("r1");
    body.set_time_ms(test::TestNow().time_since_epoch().count() * 1000);
    world.Judge(body.SerializeAsString());
  }
  return 0;
}
