// SPDX-License-Identifier: Apache-2.0
// Any bytes as a job token; and any text as what a good signer has signed.
#include "common/identity/job_token.h"

#include <cstdint>
#include <memory>

#include "tests/support/test_ca.h"

namespace {

struct World {
  sekisho::test::TestCa ca;
  sekisho::identity::Credential signer = ca.IssueHost("a-head");
  std::shared_ptr<const sekisho::identity::TrustStore> trust;

  World() {
    const sekisho::test::TemporaryDirectory directory;
    ca.Install(directory.path());
    trust = *sekisho::identity::TrustStore::Load(directory.path());
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const World world;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto now = sekisho::test::TestNow();
  const auto day = std::chrono::hours(24);
  (void)sekisho::identity::VerifyJobToken(text, *world.trust, now, day);
  (void)sekisho::identity::VerifyJobToken("nxt1." + text, *world.trust, now, day);
  const auto minted =
      sekisho::identity::MintJobToken({text, "1", "/CN=a", now, now + day, "i"}, world.signer);
  if (minted.ok()) {
    const auto verified = sekisho::identity::VerifyJobToken(*minted, *world.trust, now, day);
    if (!verified.ok() || verified->token.site != text) {
      std::abort();
    }
  }
  return 0;
}
