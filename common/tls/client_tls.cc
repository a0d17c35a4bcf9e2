// SPDX-License-Identifier: Apache-2.0
#include "common/tls/client_tls.h"

#include <utility>

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "common/tls/judge_server.h"
#include "common/tls/peer_verifier.h"

namespace sekisho::tls {
namespace {

using identity::Chain;
using identity::Identity;

std::string Text(grpc::string_ref text) { return std::string(text.data(), text.size()); }

// "gate:2119" and "[::1]:2119" without the port.
std::string HostOfTarget(const std::string& target) {
  if (target.starts_with('[')) {
    return target.substr(1, target.find(']') - 1);
  }
  return target.substr(0, target.rfind(':'));
}

class Verifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  Verifier(std::string trust_directory, ExpectedServer expected, Clock clock,
           std::shared_ptr<ServerRecord> record)
      : trust_directory_(std::move(trust_directory)),
        expected_(std::move(expected)),
        clock_(std::move(clock)),
        record_(std::move(record)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/, grpc::Status* status) override {
    const absl::StatusOr<Identity> result = Judge(*request);
    record_->Set(result);
    if (!result.ok()) {
      const auto message = result.status().message();
      *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                             std::string(message.data(), message.size()));
    }
    return true;  // judged here and now
  }

  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  absl::StatusOr<Identity> Judge(
      const grpc::experimental::TlsCustomVerificationCheckRequest& request) const {
    ASSIGN_OR_RETURN(const Chain chain, PresentedChain(Text(request.peer_cert()),
                                                       Text(request.peer_cert_full_chain())));
    ExpectedServer expected = expected_;
    if (expected.host.empty()) {
      expected.host = HostOfTarget(Text(request.target_name()));
    }
    return JudgeServer(chain, trust_directory_, expected, clock_());
  }

  const std::string trust_directory_;
  const ExpectedServer expected_;
  const Clock clock_;
  const std::shared_ptr<ServerRecord> record_;
};

}  // namespace

absl::StatusOr<Identity> ServerRecord::Get() const {
  const std::shared_ptr<const absl::StatusOr<Identity>> last = last_.load();
  if (last == nullptr) {
    return absl::UnavailableError("no TLS handshake with the server yet");
  }
  return *last;
}

void ServerRecord::Set(absl::StatusOr<Identity> result) {
  last_.store(std::make_shared<const absl::StatusOr<Identity>>(std::move(result)));
}

identity::Time SystemClock() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

ClientTls MakeClientTls(const identity::Credential& credential, const std::string& trust_directory,
                        const ExpectedServer& expected, const Clock& clock) {
  auto record = std::make_shared<ServerRecord>();
  grpc::experimental::TlsChannelCredentialsOptions options;
  // Without a root certificate gRPC would parse the system's bundle of them, which takes longer than a
  // handshake.  Ours is never looked at, see below: any will do.
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
          credential.ChainPem(), std::vector<grpc::experimental::IdentityKeyCertPair>{
                                     {credential.KeyPem(), credential.ChainPem()}}));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  // OpenSSL inside gRPC knows neither proxies nor signing policies nor our directory: its own check
  // is off, and ours decides.  The handshake still proves that the server holds the key.
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<Verifier>(trust_directory, expected,
                                                                        clock, record));
  return {grpc::experimental::TlsCredentials(options), std::move(record)};
}

}  // namespace sekisho::tls
