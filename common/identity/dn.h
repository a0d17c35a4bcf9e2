// SPDX-License-Identifier: Apache-2.0
// Distinguished names as grid users write them, /C=JP/O=Grid/CN=Taro: docs/protocol/2-identity.md.
//
// One name has one text, and two names never share one:
//   - RDN in the order of the certificate, attribute types by OpenSSL's short name or dotted
//   number;
//   - bytes outside printable ASCII, and the backslash, are \xHH of the UTF-8 value (upper-case
//     hexadecimal), as X509_NAME_oneline prints them;
//   - `/` stays as it is (CN=host/gate.example.org), except where what follows would read as a new
//     RDN (`TYPE=`): there it is \x2F, so that CN="x/CN=y" is not /CN=x/CN=y.  `+` likewise, \x2B;
//   - several attributes in one RDN are joined by `+`;
//   - the e-mail attribute is /emailAddress=; /Email= and /E= are read as the same, /USERID= as
//   /UID=.
#pragma once

#include <string>
#include <string_view>

#include <openssl/x509.h>

#include "common/status.h"

namespace sekisho::identity {

std::string DnText(const X509_NAME& name);
std::string SubjectText(const X509& certificate);
std::string IssuerText(const X509& certificate);

// A name that a person or a file wrote, in the form that DnText prints.
std::string NormalizeDn(std::string_view text);

bool SameDn(std::string_view a, std::string_view b);

}  // namespace sekisho::identity
