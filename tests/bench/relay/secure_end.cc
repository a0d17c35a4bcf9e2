// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/relay/secure_end.h"

#include <cstdio>
#include <cstdlib>

#include <openssl/evp.h>
#include <openssl/x509.h>

namespace {

SSL_CTX* Context() {
  static SSL_CTX* const context = [] {
    SSL_CTX* made = SSL_CTX_new(TLS_method());
    SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_num_tickets(made, 0);
    SSL_CTX_set_read_ahead(made, 1);
    SSL_CTX_set_default_read_buffer_len(made, 64 * 1024);
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_sign(certificate, key, EVP_sha256());
    SSL_CTX_use_certificate(made, certificate);
    SSL_CTX_use_PrivateKey(made, key);
    return made;
  }();
  return context;
}

}  // namespace

SecureEnd::SecureEnd(int fd, bool accepts) : ssl_(SSL_new(Context())) {
  SSL_set_fd(ssl_.get(), fd);
  if ((accepts ? SSL_accept(ssl_.get()) : SSL_connect(ssl_.get())) != 1) {
    std::fprintf(stderr, "TLS\n");
    std::exit(1);
  }
}
