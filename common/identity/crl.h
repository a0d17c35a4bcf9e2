// SPDX-License-Identifier: Apache-2.0
// Revocation: is a certificate on its authority's list?  Pure.
#pragma once

#include <optional>

#include "common/identity/openssl.h"
#include "common/identity/refusal.h"
#include "common/identity/trust_store.h"

namespace sekisho::identity {

// nullopt if `certificate`, issued by `issuer`, is not revoked at `now`.  An authority without a
// list is not checked; one with a list that is out of date, forged or unreadable refuses
// everything.
std::optional<Refusal> CheckRevocation(const X509& certificate, const X509& issuer,
                                       const TrustStore& trust, Time now);

}  // namespace sekisho::identity
