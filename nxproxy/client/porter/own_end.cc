// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/own_end.h"

#include <cstdlib>

#include <openssl/err.h>
#include <openssl/x509v3.h>

namespace sekisho::nxproxy::client {
namespace {

constexpr size_t kReadBytes = 64 * 1024;  // of several records with one call

const unsigned char* Alpn() { return reinterpret_cast<const unsigned char*>(kAlpn); }

int OnAlpn(SSL*, const unsigned char** out, unsigned char* out_length, const unsigned char* offered,
           unsigned int offered_length, void*) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_length, Alpn(), kAlpnBytes, offered, offered_length) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

int OnName(SSL* ssl, int* alert, void*) {
  if (SSL_is_server(ssl) == 0) {
    return SSL_TLSEXT_ERR_OK;
  }
  TlsStream* stream = TlsStream::Of(ssl);
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (stream->HasName(name)) {
    return SSL_TLSEXT_ERR_OK;
  }
  stream->SetComplaint("a connection that was meant for " +
                       std::string(name != nullptr ? name : "nobody by name") +
                       " came here (unrecognized-name)");
  *alert = SSL_AD_UNRECOGNIZED_NAME;
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Does `text` begin like an attribute, `TYPE=`?
bool StartsAttribute(std::string_view text) {
  const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
  return end != 0 && end != std::string_view::npos && text[end] == '=';
}

// As the daemons write subjects (docs/protocol/2-identity.md): OpenSSL's old form, but a separator within a value stands as
// it is where nobody can take it for one, and as \xHH where he could.
std::string NameText(X509* certificate) {
  char* line = X509_NAME_oneline(X509_get_subject_name(certificate), nullptr, 0);
  const std::string_view text = line != nullptr ? line : "";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escaped = text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '/' || text[i + 1] == '+');
    if (!is_escaped) {
      out += text[i];
      continue;
    }
    ++i;
    const bool reads_as_separator = StartsAttribute(text.substr(i + 1));
    out += !reads_as_separator ? std::string(1, text[i]) : text[i] == '/' ? "\\x2F" : "\\x2B";
  }
  OPENSSL_free(line);
  return out;
}

}  // namespace

std::unique_ptr<OwnEnd> OwnEnd::Load(std::string& error) {
  std::unique_ptr<OwnEnd> end(new OwnEnd);
  const std::string key = ReadSecret("NXPROXY_KEY_FILE", error);
  if (!error.empty()) {
    return nullptr;
  }
  end->context_.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* context = end->context_.get();
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(
      context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadBytes);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(context, OnVerify, end.get());
  SSL_CTX_set_alpn_protos(context, Alpn(), kAlpnBytes);
  SSL_CTX_set_alpn_select_cb(context, OnAlpn, nullptr);
  SSL_CTX_set_tlsext_servername_callback(context, OnName);
  if (!end->MakeStore()) {
    error = "out of memory";
    return nullptr;
  }
  const auto parsed = ParseJobKey(key);
  if (!key.empty() && !parsed) {
    error = "NXPROXY_KEY_FILE: no job's key in it";
    return nullptr;
  }
  const bool is_good = parsed ? end->UseKey(*parsed, error) : end->UseCertificate(error);
  return is_good ? std::move(end) : nullptr;
}

bool OwnEnd::MakeStore() {
  store_.reset(X509_STORE_new());
  return store_ != nullptr && UseTrust(store_.get());
}

bool OwnEnd::UseKey(const JobKey& key, std::string& error) {
  job_ = key.job;
  subject_ = key.owner;
  speakers_ = key.speakers;
  const KeyPtr own = KeyOf(key);
  const auto certificates = own != nullptr ? CertificatesOf(key, own.get()) : std::vector<CertificatePtr>();
  bool is_good = !certificates.empty() &&
                 SSL_CTX_use_certificate(context_.get(), certificates.front().get()) == 1 &&
                 SSL_CTX_use_PrivateKey(context_.get(), own.get()) == 1;
  for (size_t i = 1; i < certificates.size() && is_good; ++i) {
    is_good = SSL_CTX_add1_chain_cert(context_.get(), certificates[i].get()) == 1;
  }
  if (!is_good) {
    error = "the job's key cannot be used";
  }
  return is_good;
}

bool OwnEnd::UseCertificate(std::string& error) {
  if (!UseUserCertificate(context_.get(), error)) {
    return false;
  }
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context_.get(), &chain);
  std::string why;
  subject_ = VerifiedSubject(SSL_CTX_get0_certificate(context_.get()), chain, why);
  if (subject_.empty()) {
    error = "our own certificate: " + why;
    return false;
  }
  const char* known = getenv("NXPROXY_SPEAKERS");
  auto speakers = ParseSpeakers(known != nullptr ? known : "");
  if (!speakers) {
    error = "NXPROXY_SPEAKERS: expected SITE SUBJECT, a line each";
    return false;
  }
  speakers_ = *std::move(speakers);
  return true;
}

std::string OwnEnd::VerifiedSubject(X509* leaf, STACK_OF(X509) * chain, std::string& why) const {
  struct Free {
    void operator()(X509_STORE_CTX* context) const { X509_STORE_CTX_free(context); }
  };
  const std::unique_ptr<X509_STORE_CTX, Free> context(X509_STORE_CTX_new());
  if (context == nullptr ||
      X509_STORE_CTX_init(context.get(), store_.get(), leaf, chain) != 1) {
    why = "out of memory";
    return "";
  }
  X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_ANY);
  if (X509_verify_cert(context.get()) != 1) {
    why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
    return "";
  }
  STACK_OF(X509)* path = X509_STORE_CTX_get0_chain(context.get());
  for (int i = 0; i < sk_X509_num(path); ++i) {
    X509* certificate = sk_X509_value(path, i);
    if ((X509_get_extension_flags(certificate) & EXFLAG_PROXY) == 0) {
      return NameText(certificate);
    }
    if (!SpeaksForSigner(certificate) && !(i == 0 && StatementOf(certificate))) {
      why = "an independent proxy, or one with a policy of its own, speaks for no user";
      return "";
    }
  }
  why = "a chain without an end entity";
  return "";
}

// A task of our job at another site, or to its owner of his job: by the word of that site's queue server.
bool OwnEnd::JudgeStatement(const KeyStatement& statement, const std::string& signer,
                            std::string& why) const {
  const auto speaker = speakers_.find(statement.site);
  if (speaker == speakers_.end() || speaker->second != signer) {
    why = "at the far end is a task of a job, " + signer + " says, and " +
          (speaker == speakers_.end() ? "who speaks for " + statement.site + " is not known"
                                      : statement.site + "'s queue server is " + speaker->second) +
          "; name it in sites.json (not-yours)";
    return false;
  }
  if (statement.owner != subject_ || (!job_.empty() && statement.job != job_)) {
    why = "at the far end is job " + statement.job + " of " + statement.owner + ", expected one of " +
          subject_ + (job_.empty() ? "" : ", job " + job_) + " (not-yours)";
    return false;
  }
  return true;
}

bool OwnEnd::Judge(X509* leaf, STACK_OF(X509) * chain, std::string& why) const {
  EVP_PKEY* own = X509_get0_pubkey(SSL_CTX_get0_certificate(context_.get()));
  EVP_PKEY* theirs = X509_get0_pubkey(leaf);
  if (!job_.empty() && theirs != nullptr && EVP_PKEY_eq(own, theirs) == 1) {
    return true;  // another task of our job
  }
  const std::string subject = VerifiedSubject(leaf, chain, why);
  if (subject.empty()) {
    why = "who is at the far end is not known: " + why + " (not-yours)";
    return false;
  }
  if (const auto statement = StatementOf(leaf)) {
    return JudgeStatement(*statement, subject, why);
  }
  if (subject != subject_) {
    why = "at the far end is " + subject + ", expected " + subject_ + " (not-yours)";
    return false;
  }
  return true;
}

int OwnEnd::OnVerify(X509_STORE_CTX* store, void* self) {
  const auto* ssl = static_cast<SSL*>(
      X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  std::string why;
  const bool is_good = static_cast<OwnEnd*>(self)->Judge(
      X509_STORE_CTX_get0_cert(store), X509_STORE_CTX_get0_untrusted(store), why);
  ERR_clear_error();
  if (!is_good) {
    TlsStream::Of(ssl)->SetComplaint(why);
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
  }
  return is_good ? 1 : 0;
}

std::unique_ptr<TlsStream> OwnEnd::Connect(int fd, const std::string& name) const {
  SslPtr ssl(SSL_new(context_.get()));
  SSL_set_tlsext_host_name(ssl.get(), name.c_str());
  SSL_set_connect_state(ssl.get());
  return std::make_unique<TlsStream>(fd, std::move(ssl));
}

std::unique_ptr<TlsStream> OwnEnd::Accept(int fd, std::vector<std::string> names) const {
  SslPtr ssl(SSL_new(context_.get()));
  SSL_set_accept_state(ssl.get());
  auto stream = std::make_unique<TlsStream>(fd, std::move(ssl));
  stream->SetNames(std::move(names));
  return stream;
}

}  // namespace sekisho::nxproxy::client
