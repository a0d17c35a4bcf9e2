// SPDX-License-Identifier: Apache-2.0
// sekisho-broken-dmz: what a DMZ host in an attacker's hands can say to the queue server.  It has the host's own
// keys and a request that a user once signed, changes it or not, and sends it past gatekeeper and jobmanager.
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "common/identity/credential.h"
#include "common/identity/signed_request.h"
#include "common/refusal.h"
#include "common/rpc_status.h"
#include "common/tls/client_tls.h"
#include "proto/queue.grpc.pb.h"

namespace sekisho {
namespace {

struct Arguments {
  std::string qserver;
  std::string certificate = "/etc/grid-security/jobmanagercert.pem";
  std::string key = "/etc/grid-security/jobmanagerkey.pem";
  std::string authorities = "/etc/grid-security/certificates";
  std::string account;
  std::string file;
  std::string action = "submit";
  // Changes to what the user signed.
  std::string rsl, job, site, request_id, signer;
  int64_t later_s = 0;
  bool has_own_chain = false;  // of `signer`
  bool drop_chain = false, drop_signature = false;
};

bool ChangesBody(const Arguments& arguments) {
  return !arguments.rsl.empty() || !arguments.job.empty() || !arguments.site.empty() || !arguments.request_id.empty() || arguments.later_s != 0;
}

// Changes the body as asked.  With another key it is signed anew, but handed in with the user's chain.
absl::Status Alter(const Arguments& arguments, proto::SignedRequest& request) {
  proto::RequestBody body;
  if (!body.ParseFromString(request.body())) {
    return absl::InvalidArgumentError(arguments.file + ": not a saved request");
  }
  if (!arguments.rsl.empty()) {
    body.mutable_submit()->set_rsl(arguments.rsl);
  }
  if (!arguments.job.empty() && body.has_cancel()) {
    body.mutable_cancel()->set_job_id(arguments.job);
  } else if (!arguments.job.empty()) {
    body.mutable_signal()->set_job_id(arguments.job);
  }
  if (!arguments.site.empty()) {
    body.set_site(arguments.site);
  }
  if (!arguments.request_id.empty()) {
    body.set_request_id(arguments.request_id);
  }
  body.set_time_ms(body.time_ms() + arguments.later_s * 1000);
  if (ChangesBody(arguments)) {
    request.set_body(body.SerializeAsString());
  }
  if (!arguments.signer.empty()) {
    ASSIGN_OR_RETURN(const auto signer, identity::LoadProxyFile(arguments.signer));
    ASSIGN_OR_RETURN(const auto forged, identity::Sign(request.body(), signer));
    request.set_signature(forged.signature);
    if (arguments.has_own_chain) {
      request.mutable_chain()->Assign(forged.chain.begin(), forged.chain.end());
    }
  }
  if (arguments.drop_chain) {
    request.clear_chain();
  }
  if (arguments.drop_signature) {
    request.clear_signature();
  }
  return absl::OkStatus();
}

absl::Status Send(const Arguments& arguments) {
  std::ifstream file(arguments.file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  proto::QueueRequest request;
  if (!file || !request.mutable_request()->ParseFromString(bytes)) {
    return absl::InvalidArgumentError(arguments.file + ": not a saved request");
  }
  RETURN_IF_ERROR(Alter(arguments, *request.mutable_request()));
  request.set_account(arguments.account);

  ASSIGN_OR_RETURN(const auto credential, identity::LoadKeyPair(arguments.certificate, arguments.key));
  const tls::ClientTls tls = tls::MakeClientTls(
      credential, arguments.authorities, {.host = arguments.qserver.substr(0, arguments.qserver.rfind(':'))});
  const auto stub = proto::Queue::NewStub(grpc::CreateChannel(arguments.qserver, tls.credentials));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  if (arguments.action == "command") {
    proto::CommandReply reply;
    RETURN_IF_ERROR(FromGrpc(stub->Command(&context, request, &reply)));
    fmt::print("answered: the job is {}\n", proto::JobState_Name(reply.state()));
    return absl::OkStatus();
  }
  proto::SubmitReply reply;
  RETURN_IF_ERROR(FromGrpc(stub->Submit(&context, request, &reply)));
  if (reply.is_repeat()) {
    return absl::AlreadyExistsError(fmt::format("{}", fmt::join(reply.warning(), "; ")));
  }
  fmt::print("accepted: {}\n", reply.job_id());
  return absl::OkStatus();
}

}  // namespace
}  // namespace sekisho

int main(int argc, char** argv) {
  sekisho::Arguments arguments;
  CLI::App app("Sends a saved request to a queue server, as a DMZ host in an attacker's hands could.\n"
               "Exit code 0: it was taken; 1: it was refused, and why.");
  app.add_option("QSERVER", arguments.qserver, "HOST:PORT")->required();
  app.add_option("FILE", arguments.file, "The request, as --save-request wrote it")->required();
  app.add_option("--account", arguments.account, "As which the gatekeeper would have mapped it")->required();
  app.add_option("--as", arguments.action, "Which call carries it")->check(CLI::IsMember({"submit", "command"}));
  app.add_option("--certificate", arguments.certificate, "Of the service that speaks");
  app.add_option("--key", arguments.key, "Its key");
  app.add_option("--rsl", arguments.rsl, "Another job in place of the one signed");
  app.add_option("--job", arguments.job, "A command for another job");
  app.add_option("--site", arguments.site, "Another site");
  app.add_option("--request-id", arguments.request_id, "Another request id");
  app.add_option("--later", arguments.later_s, "Signed so many seconds later");
  app.add_option("--sign-with", arguments.signer, "Sign it again with this proxy's key, and keep the user's chain");
  app.add_flag("--own-chain", arguments.has_own_chain, "With --sign-with: hand in that proxy's chain instead");
  app.add_flag("--drop-chain", arguments.drop_chain, "Without certificates");
  app.add_flag("--drop-signature", arguments.drop_signature, "Without signature");
  CLI11_PARSE(app, argc, argv);
  const absl::Status sent = sekisho::Send(arguments);
  if (!sent.ok()) {
    fmt::print(stderr, "refused: {}\n", sekisho::Message(sent));
  }
  return sent.ok() ? 0 : 1;
}
