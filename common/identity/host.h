// SPDX-License-Identifier: Apache-2.0
// Is a verified peer the host that was dialled?  Pure.
#pragma once

#include <optional>
#include <string>

#include "common/identity/identity.h"
#include "common/identity/openssl.h"
#include "common/identity/refusal.h"

namespace sekisho::identity {

// `host` is the name or address that was dialled, without port or brackets.  RFC 2818: with a
// subjectAltName that holds host names or addresses, only those count; without, the subject's last
// CN, `host.example.org` or `host/host.example.org`.  A wildcard stands for one whole leftmost
// label. A full proxy of a host's certificate speaks for the host; an independent one does not.
std::optional<Refusal> CheckHost(const Chain& presented, const Identity& identity,
                                 const std::string& host);

// The peer must have exactly this subject, whatever its host name.
std::optional<Refusal> CheckSubject(const Identity& identity, const std::string& expected);

}  // namespace sekisho::identity
