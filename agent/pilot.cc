// SPDX-License-Identifier: Apache-2.0
#include "agent/pilot.h"

#include <charconv>

#include <fmt/format.h>

namespace sekisho::agent {
namespace {

// Takes the digits at the front of `text`; -1 if there are none.
int TakeNumber(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) {
    return -1;
  }
  text.remove_prefix(size_t(end - text.data()));
  return number;
}

int NumberOf(const std::string& text, int fallback) {
  std::string_view rest = text;
  const int number = TakeNumber(rest);
  return number < 0 || !rest.empty() ? fallback : number;
}

}  // namespace

int ProcessesOf(std::string_view tasks_per_node, int number) {
  while (!tasks_per_node.empty()) {
    const int processes = TakeNumber(tasks_per_node);
    int hosts = 1;
    if (tasks_per_node.starts_with("(x")) {
      tasks_per_node.remove_prefix(2);
      hosts = TakeNumber(tasks_per_node);
      if (!tasks_per_node.starts_with(')')) {
        return 0;
      }
      tasks_per_node.remove_prefix(1);
    }
    if (processes < 0 || hosts < 0) {
      return 0;
    }
    if (number < hosts) {
      return processes;
    }
    number -= hosts;
    if (!tasks_per_node.starts_with(',')) {
      return 0;
    }
    tasks_per_node.remove_prefix(1);
  }
  return 0;
}

absl::StatusOr<proto::AgentMessage::Pilot> ReadPilot(const std::string& job_id,
                                                            const Variable& variable) {
  proto::AgentMessage::Pilot pilot;
  pilot.set_job_id(job_id);
  pilot.set_token(variable("SEKISHO_PILOT_TOKEN"));
  pilot.set_engine_job(variable("SLURM_JOB_ID"));
  pilot.set_hosts(NumberOf(variable("SLURM_JOB_NUM_NODES"), 1));
  pilot.set_number(pilot.hosts() == 1 ? 0 : NumberOf(variable("SLURM_NODEID"), -1));
  pilot.set_processes(ProcessesOf(variable("SEKISHO_PILOT_PROCESSES"), pilot.number()));
  if (pilot.token().empty() || pilot.engine_job().empty()) {
    return absl::FailedPreconditionError(
        "SEKISHO_PILOT_TOKEN or SLURM_JOB_ID is not set: only a batch job of the queue server starts this");
  }
  if (pilot.number() < 0 || pilot.processes() < 1) {
    return absl::FailedPreconditionError(
        fmt::format("cannot tell this host's part: SLURM_NODEID=\"{}\" SEKISHO_PILOT_PROCESSES=\"{}\"",
                    variable("SLURM_NODEID"), variable("SEKISHO_PILOT_PROCESSES")));
  }
  return pilot;
}

absl::StatusOr<identity::Credential> MadeUpCredential() {
  identity::Credential credential;
  credential.source = "a certificate made up for this run";
  credential.key.reset(EVP_EC_gen("P-256"));
  identity::X509Ptr certificate(X509_new());
  if (credential.key == nullptr || certificate == nullptr) {
    return absl::InternalError("cannot make a key");
  }
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_set_version(certificate.get(), 2);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -300);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600L * 24 * 3650);
  X509_set_pubkey(certificate.get(), credential.key.get());
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("pilot"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  if (X509_sign(certificate.get(), credential.key.get(), EVP_sha256()) == 0) {
    return absl::InternalError("cannot sign a certificate");
  }
  credential.chain.push_back(std::move(certificate));
  return credential;
}

}  // namespace sekisho::agent
