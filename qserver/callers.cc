// SPDX-License-Identifier: Apache-2.0
#include "qserver/callers.h"

#include "common/call_metadata.h"
#include "common/caller_refused.h"
#include "common/identity/dn.h"
#include "common/identity/host.h"
#include "common/job_state.h"
#include "common/refusal.h"
#include "common/tls/client_tls.h"
#include "qserver/errors.h"

namespace sekisho::qserver {
namespace {

constexpr std::string_view kAccountMark = "/CN=";

std::string Value(const tls::CallMetadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
}

std::string Property(const grpc::AuthContext& peer, const char* name) {
  const auto values = peer.FindPropertyValues(name);
  return values.empty() ? "" : std::string(values[0].data(), values[0].size());
}

// So that a jobmanager can tell it from what is said of its users' requests.
absl::Status OfTheCaller(const absl::Status& why) {
  return Refuse(why.code(), GramCode(why), kCallerRefused + Message(why), Remedy(why));
}

}  // namespace

// Directories call at the same port; which method is whose is judged when it is served.
absl::Status Callers::AtQueueGate(const grpc::AuthContext& peer) {
  const absl::Status status = FindJobmanager(peer).status();
  return Told(status.ok() || Directory(peer).ok() ? absl::OkStatus() : OfTheCaller(status));
}

absl::Status Callers::AtNodesGate(const grpc::AuthContext& peer, const tls::CallMetadata& metadata) {
  if (const std::string pilot = Value(metadata, metadata::kPilot); !pilot.empty()) {
    return Pilot(pilot);
  }
  return Told(Node(peer, Value(metadata, metadata::kNode)));
}

absl::StatusOr<Jobmanager> Callers::JudgeJobmanager(const grpc::AuthContext& peer) {
  trust_.Refresh(tls::SystemClock());
  auto found = FindJobmanager(peer);
  if (!found.ok()) {
    return OfTheCaller(found.status());
  }
  return found;
}

absl::Status Callers::JudgeDirectory(const grpc::AuthContext& peer) {
  trust_.Refresh(tls::SystemClock());
  return Directory(peer);
}

absl::Status Callers::JudgeNode(const grpc::AuthContext& peer, const std::string& node) {
  trust_.Refresh(tls::SystemClock());
  return Node(peer, node);
}

// Whom the files of a moment ago do not know, those of now may: they are looked at before he comes again.
absl::Status Callers::Told(absl::Status status) {
  if (!status.ok() && !is_look_due_.exchange(true)) {
    asio::post(loop_, [this] {
      is_look_due_ = false;
      trust_.Refresh(tls::SystemClock());
    });
  }
  return status;
}

// By the service certificate itself, or by an independent proxy of it that bears an account's name.
absl::StatusOr<Jobmanager> Callers::FindJobmanager(const grpc::AuthContext& peer) {
  ASSIGN_OR_RETURN(const identity::Identity caller, trust_.verifier().PeerIdentity(peer, tls::SystemClock()));
  if (rules_.jobmanagers.count(identity::NormalizeDn(caller.subject)) > 0) {
    return Jobmanager();
  }
  const size_t last = caller.subject.rfind(kAccountMark);
  if (caller.kind == identity::CredentialKind::kIndependentProxy && caller.proxy_count == 1 &&
      last != std::string::npos &&
      rules_.jobmanagers.count(identity::NormalizeDn(caller.subject.substr(0, last))) > 0) {
    return Jobmanager{caller.subject.substr(last + kAccountMark.size())};
  }
  return errors::NotAJobmanager(caller.subject);
}

absl::Status Callers::Directory(const grpc::AuthContext& peer) {
  ASSIGN_OR_RETURN(const identity::Identity caller, trust_.verifier().PeerIdentity(peer, tls::SystemClock()));
  return rules_.directories.count(identity::NormalizeDn(caller.subject)) > 0
             ? absl::OkStatus()
             : errors::NotADirectory(caller.subject);
}

// Its certificate must be one that may speak for the node.
absl::Status Callers::Node(const grpc::AuthContext& peer, const std::string& node) {
  ASSIGN_OR_RETURN(const identity::Identity caller, trust_.verifier().PeerIdentity(peer, tls::SystemClock()));
  if (node.empty()) {
    return errors::NamelessNode(caller.subject);
  }
  if (rules_.nodes.count(identity::NormalizeDn(caller.subject)) > 0) {
    return absl::OkStatus();
  }
  if (!rules_.nodes.empty()) {
    return errors::NotANode(caller.subject, node);
  }
  ASSIGN_OR_RETURN(const identity::Chain chain,
                   tls::PresentedChain(Property(peer, "x509_pem_cert"), Property(peer, "x509_pem_cert_chain")));
  return identity::CheckHost(chain, caller, node) ? errors::NotANode(caller.subject, node) : absl::OkStatus();
}

absl::Status Callers::Pilot(const std::string& job_and_token) const {
  const auto colon = job_and_token.find(':');
  const std::string job_id = job_and_token.substr(0, colon);
  if (!rules_.is_pilot) {
    return errors::BadPilot("this site has no batch system");
  }
  if (colon == std::string::npos || !IsJobId(job_id) || !rules_.is_pilot(job_id, job_and_token.substr(colon + 1))) {
    return errors::BadPilot("its token is not the job's");
  }
  return absl::OkStatus();
}

}  // namespace sekisho::qserver
