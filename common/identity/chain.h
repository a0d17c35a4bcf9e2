// SPDX-License-Identifier: Apache-2.0
// Judges a presented chain: X.509 end entity or RFC 3820 proxies, up to a trusted authority, at a
// given time: docs/protocol/2-identity.md.  Pure.
//
// Two opinions must agree: ours, rule by rule, so that each refusal has its own reason; and
// OpenSSL's, over exactly the path that we built.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "common/identity/identity.h"
#include "common/identity/openssl.h"
#include "common/identity/refusal.h"
#include "common/identity/trust_store.h"

namespace sekisho::identity {

// What the end-entity certificate must be fit for, if it restricts itself (extendedKeyUsage).
enum class Purpose { kAny, kClient, kServer };

using Verdict = std::variant<Identity, Refusal>;

// `presented` is leaf first.  Of a chain with which something was signed before, `signed_at`: its
// certificates must have been valid then, and may not be revoked now.
Verdict JudgeChain(const Chain& presented, const TrustStore& trust, Time now, Purpose purpose,
                   std::optional<Time> signed_at = std::nullopt);

// The same as Status: see ToStatus of refusal.h.
absl::StatusOr<Identity> VerifyChain(const Chain& presented, const TrustStore& trust, Time now,
                                     Purpose purpose = Purpose::kAny);

// PermissionDenied if the identity came by a limited proxy: for everything that starts jobs.
absl::Status RequireUnlimited(const Identity& identity);

}  // namespace sekisho::identity
