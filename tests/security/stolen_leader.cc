// SPDX-License-Identifier: Apache-2.0
// sekisho-stolen-leader: what somebody can do who has taken all that a leader has: the service's
// keys, its leader key, and the passages and submissions that a user has signed for a world.
// Changes them or not, and uses them.
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <CLI/CLI.hpp>

#include "common/call_metadata.h"
#include "common/identity/credential.h"
#include "common/identity/leader_key.h"
#include "common/refusal.h"
#include "common/rpc_status.h"
#include "common/tls/client_tls.h"
#include "proto/job_service.grpc.pb.h"
#include "proto/queue.grpc.pb.h"

namespace sekisho {
namespace {

struct Arguments {
  std::string file;
  std::string world;
  int part = 0;
  int at = -1;  // the part at whose gatekeeper it knocks; -1: its own
  std::string action;
  std::string certificate = "/etc/grid-security/jobmanagercert.pem";
  std::string key = "/etc/grid-security/jobmanagerkey.pem";
  std::string authorities = "/etc/grid-security/certificates";
  std::string qserver, job;
  // In place of the part's submission: one that somebody signed for himself, or of another part.
  std::string request_file, other_file, other_world;
  int other_part = 0;
  // Changes to what the user signed, or to what the leader orders.
  std::string rsl, request_id, as_world;
  int ranks = 0;
  int64_t later_s = 0;
  bool own_key = false;
};

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    return absl::InvalidArgumentError(path + ": cannot be read");
  }
  return bytes;
}

absl::StatusOr<proto::LedWorld> StolenWorld(const std::string& path, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  proto::LedWorlds worlds;
  worlds.ParseFromString(bytes);
  for (const proto::LedWorld& world : worlds.world()) {
    if (world.name() == name) {
      return world;
    }
  }
  return absl::NotFoundError(path + ": holds no " + name);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const Arguments& arguments,
                                                    const std::string& address,
                                                    const std::string& subject) {
  ASSIGN_OR_RETURN(const auto credential,
                   identity::LoadKeyPair(arguments.certificate, arguments.key));
  const tls::ClientTls tls =
      tls::MakeClientTls(credential, arguments.authorities,
                         {.host = address.substr(0, address.rfind(':')), .subject = subject});
  return grpc::CreateChannel(address, tls.credentials);
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
}

// The part's submission, or another request; changed as asked, its signature as it was.
absl::StatusOr<proto::SignedRequest> Submission(const Arguments& arguments,
                                                const proto::LeadRequest::Part& part) {
  proto::SignedRequest request = part.submit();
  if (!arguments.request_file.empty()) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(arguments.request_file));
    request.ParseFromString(bytes);
  }
  if (!arguments.other_world.empty()) {
    ASSIGN_OR_RETURN(
        const proto::LedWorld other,
        StolenWorld(arguments.other_file.empty() ? arguments.file : arguments.other_file,
                    arguments.other_world));
    if (arguments.other_part < 0 || arguments.other_part >= other.begin().part_size()) {
      return absl::InvalidArgumentError("the other world has no such part");
    }
    request = other.begin().part(arguments.other_part).submit();
  }
  proto::RequestBody body;
  body.ParseFromString(request.body());
  const std::string before = body.SerializeAsString();
  if (!body.has_submit()) {
    return request;
  }
  proto::RequestBody::Submit& submit = *body.mutable_submit();
  if (!arguments.request_id.empty()) {
    body.set_request_id(arguments.request_id);
  }
  if (!arguments.rsl.empty()) {
    submit.set_rsl(arguments.rsl);
  }
  if (arguments.ranks > 0) {
    submit.mutable_charter()->set_ranks(arguments.ranks);
  }
  if (!arguments.as_world.empty()) {
    submit.mutable_charter()->set_world(arguments.as_world);
  }
  if (arguments.later_s != 0) {
    submit.mutable_charter()->set_ready_by_ms(submit.charter().ready_by_ms() +
                                              arguments.later_s * 1000);
  }
  if (arguments.own_key) {
    submit.mutable_charter()->set_leader_key(identity::MakeLeaderKey().open);
  }
  if (body.SerializeAsString() != before) {
    request.set_body(body.SerializeAsString());
  }
  return request;
}

proto::PartDown OrderFor(const Arguments& arguments, const proto::LedWorld& world,
                         const std::string& job) {
  proto::Order order;
  order.set_world(arguments.as_world.empty() ? world.name() : arguments.as_world);
  order.set_job_id(job);
  if (arguments.action == "cancel") {
    order.mutable_cancel()->set_reason("stolen");
  } else {
    order.mutable_release()->set_process_mapping("(vector,(0,1,1))");
  }
  const identity::LeaderKey key = arguments.own_key
                                      ? identity::MakeLeaderKey()
                                      : identity::LeaderKey{world.secret(), world.open()};
  proto::PartDown down;
  down.mutable_order()->set_body(order.SerializeAsString());
  down.mutable_order()->set_signature(identity::SignOrder(down.order().body(), key));
  return down;
}

// Straight to the queue server, as this site's jobmanager; for `job`.
absl::Status OrderInside(const Arguments& arguments, const proto::LedWorld& world) {
  ASSIGN_OR_RETURN(const auto channel, Dial(arguments, arguments.qserver, ""));
  const auto stub = proto::Queue::NewStub(channel);
  grpc::ClientContext context;
  SetDeadline(context);
  const auto call = stub->Part(&context);
  proto::PartDown first;
  first.set_job_id(arguments.job);
  call->Write(first);
  call->Write(OrderFor(arguments, world, arguments.job));
  call->WritesDone();
  for (proto::PartUp up; call->Read(&up);) {
  }
  return FromGrpc(call->Finish());
}

// By the door that leaders use: hands the part in, and orders `job` if one is named.
absl::Status KnockAsLeader(const Arguments& arguments, const proto::LedWorld& world) {
  const proto::LeadRequest::Part& part = world.begin().part(arguments.part);
  const proto::LeadRequest::Part& door =
      world.begin().part(arguments.at < 0 ? arguments.part : arguments.at);
  ASSIGN_OR_RETURN(const auto channel, Dial(arguments, door.address(), door.gatekeeper_subject()));
  const auto stub = proto::JobService::NewStub(channel);
  grpc::ClientContext context;
  SetDeadline(context);
  context.AddMetadata(metadata::kPassage, part.passage().SerializeAsString());
  if (arguments.action == "list") {
    proto::StatusReply reply;
    return FromGrpc(stub->List(&context, proto::ListRequest(), &reply));
  }
  ASSIGN_OR_RETURN(const proto::SignedRequest request, Submission(arguments, part));
  if (arguments.action == "submit") {
    proto::SubmitReply reply;
    return FromGrpc(stub->Submit(&context, request, &reply));
  }
  if (arguments.action == "command") {
    proto::CommandReply reply;
    return FromGrpc(stub->Command(&context, request, &reply));
  }
  if (arguments.action == "coallocate") {
    proto::CoallocRequest edit;
    edit.set_world(world.name());
    edit.mutable_drop()->set_part(0);
    proto::CoallocReply reply;
    return FromGrpc(stub->Coallocate(&context, edit, &reply));
  }
  const auto call = stub->Part(&context);
  proto::PartDown down;
  *down.mutable_submit() = request;
  call->Write(down);
  proto::PartUp up;
  if (!call->Read(&up)) {
    return FromGrpc(call->Finish());
  }
  fmt::print("part {}{}\n", up.submitted().job_id(),
             up.submitted().is_repeat() ? ", known already" : "");
  if (arguments.action == "part") {
    context.TryCancel();
    return absl::OkStatus();
  }
  call->Write(
      OrderFor(arguments, world, arguments.job.empty() ? up.submitted().job_id() : arguments.job));
  while (call->Read(&up) && !up.report().has_ended()) {
  }
  return up.report().has_ended() ? absl::OkStatus() : FromGrpc(call->Finish());
}

absl::Status Attack(const Arguments& arguments) {
  ASSIGN_OR_RETURN(const proto::LedWorld world, StolenWorld(arguments.file, arguments.world));
  const int parts = world.begin().part_size();
  if (arguments.part < 0 || arguments.part >= parts || arguments.at >= parts) {
    return absl::InvalidArgumentError("there is no such part");
  }
  return arguments.qserver.empty() ? KnockAsLeader(arguments, world)
                                   : OrderInside(arguments, world);
}

}  // namespace
}  // namespace sekisho

int main(int argc, char** argv) {
  sekisho::Arguments arguments;
  CLI::App app(
      "Uses what a leader of a world has, as somebody could who has stolen it.\n"
      "Exit code 0: it was let; 1: it was refused, and why.");
  app.add_option("FILE", arguments.file, "What the jobmanager stores of its worlds")->required();
  app.add_option("WORLD", arguments.world, "Which of them")->required();
  app.add_option("ACTION", arguments.action, "What to try")
      ->required()
      ->check(
          CLI::IsMember({"part", "release", "cancel", "list", "submit", "command", "coallocate"}));
  app.add_option("--part", arguments.part, "By the charter and passage of this part");
  app.add_option("--at", arguments.at, "At the gatekeeper of this part");
  app.add_option("--qserver", arguments.qserver, "At this queue server, past all doors");
  app.add_option("--job", arguments.job, "The job that is ordered about");
  app.add_option("--request", arguments.request_file,
                 "In place of the part's submission, as --save-request wrote it");
  app.add_option("--other-world", arguments.other_world,
                 "In place of it, that of a part of this world");
  app.add_option("--other-part", arguments.other_part, "Which part");
  app.add_option("--other-file", arguments.other_file, "In this file");
  app.add_option("--certificate", arguments.certificate, "Of the service that speaks");
  app.add_option("--key", arguments.key, "Its key");
  app.add_option("--rsl", arguments.rsl, "Another job in place of the one signed");
  app.add_option("--request-id", arguments.request_id, "Another request id");
  app.add_option("--ranks", arguments.ranks, "A larger world than the one signed");
  app.add_option("--as-world", arguments.as_world, "Another world");
  app.add_option("--later", arguments.later_s, "So many seconds longer to be ready in");
  app.add_flag("--own-key", arguments.own_key, "A leader's key of one's own");
  CLI11_PARSE(app, argc, argv);
  const absl::Status done = sekisho::Attack(arguments);
  if (!done.ok()) {
    fmt::print(stderr, "refused: {}\n", sekisho::Message(done));
  } else {
    fmt::print("done\n");
  }
  return done.ok() ? 0 : 1;
}
