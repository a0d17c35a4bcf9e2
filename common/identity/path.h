// SPDX-License-Identifier: Apache-2.0
// From the leaf to a trusted authority: which of the presented certificates, in which order.  Pure.
#pragma once

#include <variant>

#include "common/identity/openssl.h"
#include "common/identity/refusal.h"
#include "common/identity/trust_store.h"

namespace sekisho::identity {

// What a certificate is, by its own contents.
enum class Role { kProxy, kEndEntity, kAuthority };

// A certificate with ProxyCertInfo (RFC 3820, or the draft before it), or a legacy proxy: one whose
// subject is its issuer's name and CN=proxy or CN=limited proxy.
Role RoleOf(const X509& certificate);

// `certificates` leaf first, the root last: each issued by the next, by name and by signature.  The
// order in which a peer sends what comes after the leaf does not matter; an extra certificate does.
struct Path {
  Chain certificates;
  const X509& leaf() const { return *certificates.front(); }
  const X509& root() const { return *certificates.back(); }
};

std::variant<Path, Refusal> BuildPath(const Chain& presented, const TrustStore& trust);

}  // namespace sekisho::identity
