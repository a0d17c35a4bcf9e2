// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 between memory buffers: the owner moves the bytes.  Certificates are not judged here.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "common/identity/credential.h"
#include "common/identity/openssl.h"

namespace sekisho::nxproxy {

using TlsContext = std::unique_ptr<SSL_CTX, identity::Deleter<SSL_CTX_free>>;

// A server asks for a certificate and takes any or none; a client shows `host`'s.
absl::StatusOr<TlsContext> MakeTlsContext(const identity::Credential& host, bool is_server);

class TlsChannel {
 public:
  TlsChannel(SSL_CTX& context, bool is_server, const std::string& server_name = "");

  // Bytes from the peer.  False if TLS failed or the peer closed it.
  bool Feed(std::string_view bytes);
  // Text for the peer; kept until the handshake is done.
  bool Write(std::string_view text);

  bool is_established() const { return is_established_; }
  std::string TakeText();    // that the peer wrote
  std::string TakeOutput();  // bytes for the peer

  // Leaf first; empty if the peer showed none.
  identity::Chain PeerChain() const;
  const std::string& error() const { return error_; }

 private:
  bool Advance();
  bool Failed(const char* what, int code);

  std::unique_ptr<SSL, identity::Deleter<SSL_free>> ssl_;
  BIO* in_;   // of ssl_
  BIO* out_;  // of ssl_
  bool is_established_ = false;
  std::string waiting_;
  std::string text_;
  std::string error_;
};

}  // namespace sekisho::nxproxy
