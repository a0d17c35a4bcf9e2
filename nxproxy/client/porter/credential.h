// SPDX-License-Identifier: Apache-2.0
// TLS towards the relay: the user's credential and the trust directory, at their usual places:
// docs/protocol/2-identity.md.
#pragma once

#include <memory>
#include <string>

#include <openssl/ssl.h>

namespace sekisho::nxproxy::client {

struct FreeSsl {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using ContextPtr = std::unique_ptr<SSL_CTX, FreeSsl>;
using SslPtr = std::unique_ptr<SSL, FreeSsl>;

// $NXPROXY_TOKEN_FILE's text, "" if there is none.  Read at each dial: the token is renewed there.
std::string ReadToken(std::string& error);

// The text of the file that variable `name` names, which only its owner may read; "" if it is not set.
std::string ReadSecret(const char* name, std::string& error);

// Another text once the token has been renewed, or the certificate if there is none.
std::string CredentialStamp();
// The same of the job's key.
std::string KeyStamp();

// With the user's certificate, unless a token says who we are.  nullptr and `error` if the
// credential cannot be used.
ContextPtr MakeContext(bool has_token, std::string& error);

// The trust directory; chains of proxies verify.
bool UseTrust(X509_STORE* store);
// The user's certificate, chain and key.
bool UseUserCertificate(SSL_CTX* context, std::string& error);

// Asks the peer to be `host`, a name or an address.
bool ExpectHost(SSL* ssl, const std::string& host);

// Why the last operation failed, in words.
std::string TlsError(const SSL* ssl);

}  // namespace sekisho::nxproxy::client
