// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/tls_channel.h"

#include <fmt/format.h>
#include <openssl/err.h>

namespace sekisho::nxproxy {
namespace {

constexpr size_t kTextMax = 256 * 1024;

int TakeAny(X509_STORE_CTX* /*context*/, void* /*argument*/) { return 1; }

}  // namespace

absl::StatusOr<TlsContext> MakeTlsContext(const identity::Credential& host, bool is_server) {
  TlsContext context(SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context.get(), 0);  // a resumed session would bring no chain
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_cert_list(context.get(), 128 * 1024);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // Chains and proxies are judged by common/identity, once the handshake proved the key.
  SSL_CTX_set_cert_verify_callback(context.get(), TakeAny, nullptr);
  if (SSL_CTX_use_certificate(context.get(), host.chain.front().get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), host.key.get()) != 1) {
    return absl::FailedPreconditionError(
        fmt::format("{}: {}", host.source, identity::LastOpenSslError()));
  }
  for (size_t i = 1; i < host.chain.size(); ++i) {
    SSL_CTX_add1_chain_cert(context.get(), host.chain[i].get());
  }
  return context;
}

TlsChannel::TlsChannel(SSL_CTX& context, bool is_server, const std::string& server_name)
    : ssl_(SSL_new(&context)), in_(BIO_new(BIO_s_mem())), out_(BIO_new(BIO_s_mem())) {
  SSL_set_bio(ssl_.get(), in_, out_);
  if (is_server) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
    if (!server_name.empty()) {
      SSL_set_tlsext_host_name(ssl_.get(), server_name.c_str());
    }
    Advance();
  }
}

bool TlsChannel::Failed(const char* what, int code) {
  error_ = code == SSL_ERROR_ZERO_RETURN
               ? "closed"
               : fmt::format("{}: {}", what, identity::LastOpenSslError());
  ERR_clear_error();
  return false;
}

bool TlsChannel::Advance() {
  ERR_clear_error();
  if (!is_established_) {
    const int done = SSL_do_handshake(ssl_.get());
    if (done != 1) {
      const int code = SSL_get_error(ssl_.get(), done);
      return code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE ||
             Failed("handshake", code);
    }
    is_established_ = true;
    if (!waiting_.empty()) {
      const std::string text = std::move(waiting_);
      waiting_.clear();
      if (!Write(text)) {
        return false;
      }
    }
  }
  char buffer[16 * 1024];
  for (;;) {
    const int got = SSL_read(ssl_.get(), buffer, sizeof buffer);
    if (got <= 0) {
      const int code = SSL_get_error(ssl_.get(), got);
      return code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE || Failed("read", code);
    }
    text_.append(buffer, static_cast<size_t>(got));
    if (text_.size() > kTextMax) {
      return Failed("more text than anyone takes", 0);
    }
  }
}

bool TlsChannel::Feed(std::string_view bytes) {
  return BIO_write(in_, bytes.data(), static_cast<int>(bytes.size())) ==
             static_cast<int>(bytes.size()) &&
         Advance();
}

bool TlsChannel::Write(std::string_view text) {
  if (!is_established_) {
    waiting_ += text;
    return true;
  }
  const int done = SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
  return done == static_cast<int>(text.size()) || Failed("write", SSL_get_error(ssl_.get(), done));
}

std::string TlsChannel::TakeText() {
  std::string out;
  out.swap(text_);
  return out;
}

std::string TlsChannel::TakeOutput() {
  std::string out(BIO_ctrl_pending(out_), '\0');
  if (!out.empty()) {
    BIO_read(out_, out.data(), static_cast<int>(out.size()));
  }
  return out;
}

identity::Chain TlsChannel::PeerChain() const {
  identity::Chain chain;
  X509* leaf = SSL_get0_peer_certificate(ssl_.get());
  if (leaf == nullptr) {
    return chain;
  }
  chain.push_back(identity::Share(leaf));
  const STACK_OF(X509)* rest = SSL_get_peer_cert_chain(ssl_.get());
  for (int i = 0; i < sk_X509_num(rest); ++i) {
    X509* one = sk_X509_value(rest, i);
    if (X509_cmp(one, leaf) != 0) {  // a client's stack begins with the leaf, a server's does not
      chain.push_back(identity::Share(one));
    }
  }
  return chain;
}

}  // namespace sekisho::nxproxy
