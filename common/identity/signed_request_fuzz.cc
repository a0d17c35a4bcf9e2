// SPDX-License-Identifier: Apache-2.0
// Any bytes as a signed request: body, signature and chain cut out of the input, and a good chain
// with a foreign signature.
#include "common/identity/signed_request.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "tests/support/test_ca.h"

namespace {

struct World {
  sekisho::test::TestCa ca;
  std::shared_ptr<const sekisho::identity::TrustStore> trust;
  sekisho::identity::SignedRequest good;

  World() {
    const sekisho::test::TemporaryDirectory directory;
    ca.Install(directory.path());
    trust = *sekisho::identity::TrustStore::Load(directory.path());
    good = *sekisho::identity::Sign("a good request",
                                    sekisho::test::MakeProxy(ca.IssueUser("/C=JP/O=Test/CN=Taro")));
  }
};

// Fields of the input: each behind its length in two bytes.
std::string Take(std::string_view& rest) {
  if (rest.size() < 2) {
    rest = {};
    return "";
  }
  const size_t wanted = static_cast<uint8_t>(rest[0]) * 256u + static_cast<uint8_t>(rest[1]);
  rest.remove_prefix(2);
  const std::string field(rest.substr(0, wanted));
  rest.remove_prefix(std::min(wanted, rest.size()));
  return field;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sekisho::identity;
  static const World world;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  SignedRequest request;
  request.body = Take(rest);
  request.signature = Take(rest);
  const SignedRequest forged{request.body, request.signature, world.good.chain};
  while (!rest.empty()) {
    request.chain.push_back(Take(rest));
  }
  const Time now = sekisho::test::TestNow();
  JudgedChains chains(world.trust, Purpose::kAny);
  CHECK(std::holds_alternative<Refusal>(JudgeRequest(request, chains, now)));
  CHECK(std::holds_alternative<Refusal>(JudgeRequest(forged, chains, now)));
  return 0;
}
