// SPDX-License-Identifier: Apache-2.0
// Any bytes as PEM text of a peer's chain, judged against a store that knows one authority.
#include "common/identity/chain.h"

#include <cstdint>
#include <memory>

#include "common/identity/credential.h"
#include "common/identity/describe.h"
#include "common/identity/host.h"
#include "tests/support/test_ca.h"

namespace {

std::shared_ptr<const sekisho::identity::TrustStore> MakeTrust() {
  const sekisho::test::TemporaryDirectory directory;
  const sekisho::test::TestCa ca("/C=JP/O=Grid/CN=CA");
  ca.Install(directory.path(), ca.Crl({}), ca.SigningPolicyText({"/C=JP/*"}));
  return *sekisho::identity::TrustStore::Load(directory.path());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sekisho::identity;
  static const std::shared_ptr<const TrustStore> trust = MakeTrust();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<Chain> chain = ParsePemChain(text);
  if (!chain.ok()) {
    absl::StatusOr<X509Ptr> certificate = ParseDer(text);
    if (!certificate.ok()) {
      return 0;
    }
    chain = Chain();
    chain->push_back(*std::move(certificate));
  }
  (void)DescribeChain(*chain);
  (void)ParseCredential(text, "fuzz");
  const Verdict verdict = JudgeChain(*chain, *trust, sekisho::test::TestNow(), Purpose::kClient);
  CHECK(std::holds_alternative<Refusal>(verdict));  // nobody has this authority's key
  Identity identity;
  identity.subject = "/C=JP/O=Grid/CN=Taro";
  (void)CheckHost(*chain, identity, "gate.example.org");
  return 0;
}
