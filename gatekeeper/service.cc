// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/service.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include <asio/ip/address.hpp>

#include "common/acceptor.h"
#include "common/call_metadata.h"
#include "common/caught.h"
#include "common/refusal.h"
#include "common/rpc_status.h"
#include "gatekeeper/errors.h"

namespace sekisho::gatekeeper {
namespace {

constexpr std::string_view kForwarded = "/sekisho.proto.JobService/";
constexpr int kCallsPerPeer = 4096;
constexpr int kCallsPerSubject = 1024;
constexpr int kRequestSeconds = 120;
constexpr size_t kStrangersTextMost = 200;  // of what they say of themselves

std::string Value(const grpc::ServerContextBase& context, const char* key) {
  const auto& all = context.client_metadata();
  const auto found = all.find(key);
  return found == all.end() ? "" : std::string(found->second.data(), found->second.size());
}

// The address without the port, as connections are counted.
std::string AddressOf(const std::string& grpc_peer) {
  const std::string endpoint = EndpointText(grpc_peer);
  std::string host = endpoint.substr(0, endpoint.rfind(':'));
  if (host.size() > 2 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  std::error_code error;
  const auto address = asio::ip::make_address(host, error);
  return error ? host : PeerOf(address);
}

void CountDown(std::map<std::string, int>& counts, const std::string& key) {
  if (const auto at = counts.find(key); at != counts.end() && --at->second == 0) {
    counts.erase(at);
  }
}

const char* CodeName(int code) {
  constexpr std::array kNames = {
      "OK",          "CANCELLED",         "UNKNOWN",          "INVALID_ARGUMENT",    "DEADLINE_EXCEEDED",
      "NOT_FOUND",   "ALREADY_EXISTS",    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",     "OUT_OF_RANGE",      "UNIMPLEMENTED",    "INTERNAL",            "UNAVAILABLE",
      "DATA_LOSS",   "UNAUTHENTICATED"};
  return code >= 0 && code < static_cast<int>(kNames.size()) ? kNames[static_cast<size_t>(code)]
                                                             : "UNKNOWN";
}

}  // namespace

// One call, from its arrival to its audit line.  Only the loop touches it.
struct Service::Call {
  explicit Call(Loop& loop) : request_time(loop) {}

  grpc::GenericCallbackServerContext* context = nullptr;
  std::unique_ptr<Forward> forward;  // until Done
  asio::steady_timer request_time;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  AuditRecord record;
  std::string peer;  // as gRPC writes it
  std::string address;
  Grant grant;
  Inside inside;
  bool is_limited = false;
  bool is_leader = false;
  bool is_counted = false;
  bool is_stranger = false;  // hung up on when it has been told
};

Service::Service(Loop& loop, const Config& config, Parts parts)
    : loop_(loop), config_(config), parts_(std::move(parts)) {}

grpc::ServerGenericBidiReactor* Service::CreateReactor(grpc::GenericCallbackServerContext* context) {
  auto call = std::make_shared<Call>(loop_);
  call->context = context;
  call->record.time = std::chrono::system_clock::now();
  call->peer = context->peer();
  call->record.peer = EndpointText(call->peer);
  call->record.method = context->method();
  call->forward = std::make_unique<Forward>(context, [this, call](const Forward::Summary& summary) {
    asio::post(loop_, [this, call, summary] { Done(call, summary); });
  });
  Forward* const forward = call->forward.get();
  asio::post(loop_, [this, call] { co_spawn(loop_, Serve(call), Logged("a call")); });
  return forward;
}

awaitable<void> Service::Serve(std::shared_ptr<Call> call) {
  const absl::Status admitted = co_await Caught("a call of " + call->record.peer, Admit(call));
  if (!admitted.ok()) {
    call->forward->Refuse(ToGrpc(admitted));
    co_return;
  }
  Metadata metadata = {
      {metadata::kSubject, call->record.subject},   {metadata::kAccount, call->grant.account},
      {metadata::kService, call->grant.service},    {metadata::kQueue, call->grant.queue},
      {metadata::kPeer, call->record.peer},         {metadata::kLimited, call->is_limited ? "1" : "0"},
      {metadata::kToken, call->inside.token},       {metadata::kLeader, call->is_leader ? "1" : "0"},
  };
  const auto is_late = std::make_shared<std::atomic<bool>>(false);
  const int seconds = config_.limits().request_s() > 0 ? config_.limits().request_s() : kRequestSeconds;
  call->forward->Start(
      call->inside.channel, metadata, [account = call->grant.account, is_late, seconds](const grpc::Status& status) {
        if (*is_late) {
          return ToGrpc(errors::NothingAsked(seconds));
        }
        // What the jobmanager itself says carries details; a broken connection does not.
        const bool is_broken = status.error_code() == grpc::UNAVAILABLE && status.error_details().empty();
        return is_broken ? ToGrpc(errors::JobManagerLost(account)) : status;
      });
  call->request_time.expires_after(std::chrono::seconds(seconds));
  call->request_time.async_wait([waiting = std::weak_ptr(call), is_late](const std::error_code& error) {
    const auto late = error ? nullptr : waiting.lock();
    if (late && late->forward && !late->forward->was_asked()) {
      *is_late = true;
      late->forward->Cancel();
    }
  });
}

awaitable<absl::Status> Service::Admit(std::shared_ptr<Call> call) {
  // Count.
  const int limit = config_.limits().calls_per_peer() > 0 ? config_.limits().calls_per_peer() : kCallsPerPeer;
  call->address = AddressOf(call->context->peer());
  call->is_counted = true;
  ++calls_;
  const bool is_too_many = ++calls_by_peer_[call->address] > limit;
  if (is_stopping_) {
    co_return errors::Stopping();
  }

  // Authenticate, before anything else.
  const auto caller = parts_.identify(*call->context);
  call->is_stranger = true;
  if (!caller.ok()) {
    co_return errors::NotAuthenticated(caller.status());
  }
  call->record.subject = caller->subject;
  call->is_limited = caller->is_limited;
  call->is_leader = caller->is_leader;
  const int subject_limit =
      config_.limits().calls_per_subject() > 0 ? config_.limits().calls_per_subject() : kCallsPerSubject;
  const bool is_too_many_of_subject = ++calls_by_subject_[caller->subject] > subject_limit;
  if (!parts_.authenticated(call->context->peer())) {
    co_return errors::TooManyConnections(call->address);
  }
  call->is_stranger = false;
  if (const absl::Status status = parts_.can_audit(); !status.ok()) {
    co_return errors::NoAuditLog(status);
  }
  if (is_too_many) {
    co_return errors::TooManyCalls(call->address, limit);
  }
  if (is_too_many_of_subject) {
    co_return errors::TooManyCallsOfSubject(caller->subject, subject_limit);
  }

  if (!call->record.method.starts_with(kForwarded)) {
    co_return errors::NoSuchMethod(call->record.method);
  }

  // Map.
  call->record.service = Value(*call->context, metadata::kService);
  CO_ASSIGN_OR_RETURN(call->grant, Decide(config_, *caller,
                                          {call->record.service,
                                           Value(*call->context, metadata::kAccount)}));
  call->record.service = call->grant.service;
  call->record.account = call->grant.account;

  // Find the jobmanager.
  CO_ASSIGN_OR_RETURN(call->inside, co_await parts_.connect(call->grant.account));
  co_return absl::OkStatus();
}

void Service::Done(const std::shared_ptr<Call>& call, const Forward::Summary& summary) {
  call->forward.reset();
  call->request_time.cancel();
  if (call->is_counted) {
    --calls_;
    CountDown(calls_by_peer_, call->address);
    CountDown(calls_by_subject_, call->record.subject);
  }
  if (call->is_stranger) {
    parts_.hang_up(call->peer);
  }
  AuditRecord& record = call->record;
  record.status = CodeName(summary.status.error_code());
  record.reason = summary.status.error_message();
  record.bytes_in = summary.bytes_in;
  record.bytes_out = summary.bytes_out;
  record.took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - call->begun);
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [address, count] : strangers_.Due(now)) {
    parts_.audit(LeftOut(address, count));
  }
  if (record.subject.empty()) {
    record.method.resize(std::min(record.method.size(), kStrangersTextMost));
    record.reason.resize(std::min(record.reason.size(), kStrangersTextMost));
    if (!strangers_.Admit(call->address, now)) {
      return;
    }
  }
  parts_.audit(record);
}

}  // namespace sekisho::gatekeeper
