// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/credential.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

std::string FromEnvironment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Only its owner may read a file with a secret.
std::string ComplaintOf(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    return path + ": " + std::strerror(errno);
  }
  if ((status.st_mode & 077) != 0) {
    return path + ": expected mode 0600, others may read it";
  }
  return "";
}

struct Files {
  std::string certificate;
  std::string key;
};

Files FindCredential() {
  if (const std::string proxy = FromEnvironment("X509_USER_PROXY"); !proxy.empty()) {
    return {proxy, proxy};
  }
  if (const std::string proxy = "/tmp/x509up_u" + std::to_string(getuid()); Exists(proxy)) {
    return {proxy, proxy};
  }
  if (const std::string certificate = FromEnvironment("X509_USER_CERT"); !certificate.empty()) {
    return {certificate, FromEnvironment("X509_USER_KEY")};
  }
  const std::string folder = FromEnvironment("HOME") + "/.globus/";
  return {folder + "usercert.pem", folder + "userkey.pem"};
}

std::string FindTrust() {
  if (const std::string folder = FromEnvironment("X509_CERT_DIR"); !folder.empty()) {
    return folder;
  }
  const std::string own = FromEnvironment("HOME") + "/.globus/certificates";
  return Exists(own) ? own : "/etc/grid-security/certificates";
}

// Of the file that variable `name` names, else of the user's certificate.
std::string StampOf(const char* name) {
  const std::string path = FromEnvironment(name);
  struct stat status;
  if (stat((path.empty() ? FindCredential().certificate : path).c_str(), &status) != 0) {
    return "";
  }
  return std::to_string(status.st_ino) + " " + std::to_string(status.st_mtim.tv_sec) + " " +
         std::to_string(status.st_mtim.tv_nsec);
}

// An authority without a revocation list is not checked (docs/protocol/2-identity.md).
int OnVerify(int is_good, X509_STORE_CTX* context) {
  return is_good == 1 || X509_STORE_CTX_get_error(context) == X509_V_ERR_UNABLE_TO_GET_CRL ? 1 : 0;
}

std::string LastError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "unknown error";
}

}  // namespace

std::string ReadSecret(const char* name, std::string& error) {
  const std::string path = FromEnvironment(name);
  if (path.empty()) {
    return "";
  }
  error = ComplaintOf(path);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (error.empty() && text.str().empty()) {
    error = path + ": nothing in it";
  }
  return error.empty() ? text.str() : "";
}

std::string ReadToken(std::string& error) {
  std::stringstream text(ReadSecret("NXPROXY_TOKEN_FILE", error));
  std::string token;
  text >> token;
  return token;
}

std::string CredentialStamp() { return StampOf("NXPROXY_TOKEN_FILE"); }

std::string KeyStamp() { return StampOf("NXPROXY_KEY_FILE"); }

bool UseTrust(X509_STORE* store) {
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL |
                                  X509_V_FLAG_ALLOW_PROXY_CERTS);
  X509_STORE_set_verify_cb(store, OnVerify);
  return X509_STORE_load_path(store, FindTrust().c_str()) == 1;
}

bool UseUserCertificate(SSL_CTX* context, std::string& error) {
  const Files files = FindCredential();
  error = ComplaintOf(files.key);
  if (error.empty() &&
      (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1 ||
       SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1)) {
    error = files.certificate + ": " + LastError();
  }
  if (!error.empty()) {
    error = "no credential: " + error +
            "; make one with 'sekisho proxy init', or set NXPROXY_TOKEN_FILE";
  }
  return error.empty();
}

ContextPtr MakeContext(bool has_token, std::string& error) {
  ContextPtr context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, OnVerify);
  UseTrust(SSL_CTX_get_cert_store(context.get()));
  return has_token || UseUserCertificate(context.get(), error) ? std::move(context) : nullptr;
}

bool ExpectHost(SSL* ssl, const std::string& host) {
  uint8_t ip[16];
  if (inet_pton(AF_INET, host.c_str(), ip) == 1 || inet_pton(AF_INET6, host.c_str(), ip) == 1) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1;
  }
  SSL_set_tlsext_host_name(ssl, host.c_str());
  return SSL_set1_host(ssl, host.c_str()) == 1;
}

std::string TlsError(const SSL* ssl) {
  const long verdict = SSL_get_verify_result(ssl);
  if (verdict != X509_V_OK && verdict != X509_V_ERR_UNABLE_TO_GET_CRL) {  // see OnVerify
    ERR_clear_error();
    return std::string("its certificate: ") + X509_verify_cert_error_string(verdict);
  }
  return "TLS: " + LastError();
}

}  // namespace sekisho::nxproxy::client
