// SPDX-License-Identifier: Apache-2.0
#include "common/tls/judge_server.h"

#include <memory>
#include <optional>

#include "common/identity/host.h"
#include "common/identity/trust_store.h"

namespace sekisho::tls {

using identity::Identity;
using identity::Refusal;

absl::StatusOr<Identity> JudgeServer(const identity::Chain& chain, const std::string& trust_directory,
                                     const ExpectedServer& expected, identity::Time now) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const identity::TrustStore> trust,
                   identity::TrustStore::LoadFor(trust_directory, chain));
  ASSIGN_OR_RETURN(Identity server,
                   identity::VerifyChain(chain, *trust, now, identity::Purpose::kServer));
  const std::optional<Refusal> refusal = expected.subject.empty()
                                             ? identity::CheckHost(chain, server, expected.host)
                                             : identity::CheckSubject(server, expected.subject);
  if (refusal.has_value()) {
    return identity::ToStatus(*refusal);
  }
  return server;
}

}  // namespace sekisho::tls
