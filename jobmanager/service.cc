// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/service.h"

#include <chrono>
#include <utility>
#include <variant>

#include <asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>
#include <openssl/crypto.h>

#include "common/call_metadata.h"
#include "common/daemon.h"
#include "common/job_state.h"
#include "jobmanager/errors.h"
#include "jobmanager/watch.h"

namespace sekisho::jobmanager {
namespace {

using Clock = std::chrono::steady_clock;
using asio::experimental::awaitable_operators::operator||;

constexpr int kStatusIdsMax = 10'000;
constexpr size_t kStatusBytesMax = 3'500'000;
constexpr size_t kInputChunkMost = 256 << 10;

std::string Value(const grpc::CallbackServerContext& context, const char* key) {
  const auto& all = context.client_metadata();
  const auto found = all.find(key);
  return found == all.end() ? "" : std::string(found->second.data(), found->second.size());
}

double MillisecondsSince(Clock::time_point begun) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

proto::Hop HopOf(const std::string& name, const absl::Status& status, const std::string& detail,
                 Clock::time_point begun) {
  proto::Hop hop;
  hop.set_name(name);
  hop.set_is_ok(status.ok());
  hop.set_detail(status.ok() ? detail : Message(status));
  hop.set_remedy(Remedy(status));
  hop.set_milliseconds(MillisecondsSince(begun));
  return hop;
}

}  // namespace

Service::Service(Loop& loop, Jobs& jobs, Leaders& leaders, std::string token,
                 std::vector<std::string> services)
    : loop_(loop), jobs_(jobs), leaders_(leaders), token_(std::move(token)), services_(std::move(services)) {}

absl::StatusOr<Caller> Service::CallerOf(const Context& context, bool may_lead) const {
  const std::string token = Value(context, metadata::kToken);
  if (token_.empty() || token.size() != token_.size() ||
      CRYPTO_memcmp(token.data(), token_.data(), token.size()) != 0) {
    return errors::NotFromTheGatekeeper();
  }
  if (!may_lead && Value(context, metadata::kLeader) == "1") {
    return errors::LeadersMayNot();
  }
  Caller caller;
  caller.subject = Value(context, metadata::kSubject);
  caller.account = Value(context, metadata::kAccount);
  caller.service = Value(context, metadata::kService);
  caller.queue = Value(context, metadata::kQueue);
  caller.peer = Value(context, metadata::kPeer);
  caller.is_limited = Value(context, metadata::kLimited) == "1";
  if (caller.subject.empty() || caller.account != jobs_.queue().options().account) {
    return errors::NotFromTheGatekeeper();
  }
  return caller;
}

grpc::ServerUnaryReactor* Service::Submit(Context* context, const proto::SignedRequest* request,
                                          proto::SubmitReply* reply) {
  return rpc::Unary(loop_, context,
                    [this, caller = CallerOf(*context), request, reply]() -> awaitable<absl::Status> {
                      CO_RETURN_IF_ERROR(caller.status());
                      CO_ASSIGN_OR_RETURN(*reply, co_await jobs_.Submit(*caller, *request));
                      co_return absl::OkStatus();
                    });
}

grpc::ServerWriteReactor<proto::Update>* Service::Run(Context* context,
                                                      const proto::SignedRequest* request) {
  return rpc::Stream<proto::Update>(loop_, [this, caller = CallerOf(*context), request](auto& writer) {
    return DoRun(caller, *request, writer);
  });
}

awaitable<absl::Status> Service::DoRun(absl::StatusOr<Caller> caller, proto::SignedRequest request,
                                       rpc::Writer<proto::Update>& writer) {
  CO_RETURN_IF_ERROR(caller.status());
  auto watcher = std::make_shared<Watcher>(loop_);
  proto::Update update;
  CO_ASSIGN_OR_RETURN(*update.mutable_submitted(), co_await jobs_.Submit(*caller, request, watcher));
  const proto::SubmitReply reply = update.submitted();
  if (!co_await writer.Write(std::move(update))) {
    co_return absl::CancelledError("the client is gone");
  }
  if (reply.dry_run()) {
    co_return absl::OkStatus();
  }
  proto::AttachRequest attach;
  attach.set_job_id(reply.job_id());
  attach.set_events(true);
  attach.set_output(true);
  attach.set_follow(true);
  if (reply.is_repeat()) {
    watcher = nullptr;
  }
  co_return co_await ShowJob(loop_, jobs_, writer, std::move(attach), std::move(watcher));
}

grpc::ServerWriteReactor<proto::Update>* Service::Attach(Context* context,
                                                         const proto::AttachRequest* request) {
  return rpc::Stream<proto::Update>(loop_, [this, caller = CallerOf(*context), request](auto& writer) {
    return DoAttach(caller, *request, writer);
  });
}

awaitable<absl::Status> Service::DoAttach(absl::StatusOr<Caller> caller, proto::AttachRequest request,
                                          rpc::Writer<proto::Update>& writer) {
  CO_RETURN_IF_ERROR(caller.status());
  if (request.follow()) {
    co_await jobs_.UntilMade(request.job_id(), caller->subject);
  }
  if (jobs_.book().IsUnmade(request.job_id(), caller->subject)) {
    proto::Update update;
    *update.mutable_status() = jobs_.book().Status(request.job_id(), caller->subject);
    co_await writer.Write(std::move(update));
    co_return absl::OkStatus();
  }
  if (jobs_.book().Find(request.job_id(), caller->subject) == nullptr) {
    co_return errors::NoSuchJob(request.job_id());
  }
  co_return co_await ShowJob(loop_, jobs_, writer, std::move(request), nullptr);
}

grpc::ServerReadReactor<proto::InputChunk>* Service::Input(Context* context, proto::InputReply* reply) {
  return rpc::Receive<proto::InputChunk>(loop_, [this, caller = CallerOf(*context), reply](auto& reader) {
    return DoInput(caller, reader, *reply);
  });
}

awaitable<absl::Status> Service::DoInput(absl::StatusOr<Caller> caller, rpc::Reader<proto::InputChunk>& reader,
                                         proto::InputReply& reply) {
  CO_RETURN_IF_ERROR(caller.status());
  proto::InputChunk chunk;
  if (!co_await reader.Read(chunk)) {
    co_return errors::Malformed("input without a chunk");
  }
  const std::string id = chunk.job_id();
  if (jobs_.book().Find(id, caller->subject) == nullptr) {
    co_return errors::NoSuchJob(id);
  }
  const NewestCall feed(feeds_, loop_, id);
  const auto ended = co_await (PassInput(std::move(chunk), reader, reply) || feed.UntilTakenOver());
  const absl::Status* passed = std::get_if<absl::Status>(&ended);
  co_return passed != nullptr ? *passed : errors::InputTakenOver(id);
}

awaitable<absl::Status> Service::PassInput(proto::InputChunk chunk, rpc::Reader<proto::InputChunk>& reader,
                                           proto::InputReply& reply) {
  const bool is_inside = co_await jobs_.UntilSubmitted(chunk.job_id());
  if (!is_inside) {
    co_return errors::AlreadyEnded(chunk.job_id(), "no job of the queue server");
  }
  const auto inside = jobs_.queue().Input();
  for (;;) {
    if (chunk.data().size() > kInputChunkMost) {
      co_return errors::Malformed(fmt::format("a piece of input over {} bytes", kInputChunkMost));
    }
    const bool is_sent = co_await inside->Write(std::move(chunk));
    if (!is_sent) {
      break;
    }
    const bool has_more = co_await reader.Read(chunk);
    if (!has_more) {
      inside->CloseWrites();
      break;
    }
  }
  const absl::Status status = co_await inside->Finish();
  reply = inside->reply;
  co_return status.ok() || IsVerdict(status) ? status : errors::QueueServerLost(jobs_.here().site);
}

grpc::ServerUnaryReactor* Service::Command(Context* context, const proto::SignedRequest* request,
                                           proto::CommandReply* reply) {
  return rpc::Unary(loop_, context,
                    [this, caller = CallerOf(*context), request, reply]() -> awaitable<absl::Status> {
                      CO_RETURN_IF_ERROR(caller.status());
                      CO_ASSIGN_OR_RETURN(*reply, co_await jobs_.Command(*caller, *request));
                      co_return absl::OkStatus();
                    });
}

grpc::ServerUnaryReactor* Service::Administer(Context* context, const proto::SignedRequest* request,
                                              proto::AdministerReply* reply) {
  return rpc::Unary(loop_, context,
                    [this, caller = CallerOf(*context), request, reply]() -> awaitable<absl::Status> {
                      CO_RETURN_IF_ERROR(caller.status());
                      CO_ASSIGN_OR_RETURN(*reply, co_await jobs_.Administer(*caller, *request));
                      co_return absl::OkStatus();
                    });
}

grpc::ServerUnaryReactor* Service::Status(Context* context, const proto::StatusRequest* request,
                                          proto::StatusReply* reply) {
  return rpc::Unary(loop_, context,
                    [this, caller = CallerOf(*context), request, reply]() -> awaitable<absl::Status> {
                      CO_RETURN_IF_ERROR(caller.status());
                      if (request->job_id_size() > kStatusIdsMax) {
                        co_return errors::Malformed(fmt::format("more than {} job ids", kStatusIdsMax));
                      }
                      size_t size = 0;
                      for (const std::string& id : request->job_id()) {
                        if (request->without_rsl()) {
                          *reply->add_job() = jobs_.book().Status(id, caller->subject);
                        } else {
                          *reply->add_job() = co_await jobs_.Status(id, caller->subject);
                        }
                        size += reply->job(reply->job_size() - 1).ByteSizeLong();
                        if (size > kStatusBytesMax && reply->job_size() > 1) {
                          co_return errors::TooMuchAtOnce(request->job_id_size());
                        }
                      }
                      co_return absl::OkStatus();
                    });
}

grpc::ServerUnaryReactor* Service::List(Context* context, const proto::ListRequest* request,
                                        proto::StatusReply* reply) {
  return rpc::Unary(loop_, context,
                    [this, caller = CallerOf(*context), request, reply]() -> awaitable<absl::Status> {
                      CO_RETURN_IF_ERROR(caller.status());
                      *reply = jobs_.book().List(caller->subject, request->all());
                      co_return absl::OkStatus();
                    });
}

grpc::ServerUnaryReactor* Service::Site(Context* context, const proto::SiteRequest*, proto::SiteInfo* reply) {
  return rpc::Unary(loop_, context, [this, caller = CallerOf(*context), reply]() -> awaitable<absl::Status> {
    CO_RETURN_IF_ERROR(caller.status());
    CO_RETURN_IF_ERROR(co_await jobs_.queue().Reach());
    CO_ASSIGN_OR_RETURN(*reply, co_await jobs_.queue().Site());
    reply->set_account(caller->account);
    reply->mutable_service()->Assign(services_.begin(), services_.end());
    co_return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<proto::Hop>* Service::Diagnose(Context* context, const proto::DiagnoseRequest*) {
  return rpc::Stream<proto::Hop>(loop_, [this, caller = CallerOf(*context)](auto& writer) {
    return DoDiagnose(caller, writer);
  });
}

// Hop by hop, up to the first that fails.
awaitable<absl::Status> Service::DoDiagnose(absl::StatusOr<Caller> caller, rpc::Writer<proto::Hop>& writer) {
  CO_RETURN_IF_ERROR(caller.status());
  auto begun = Clock::now();
  co_await writer.Write(HopOf("jobmanager", absl::OkStatus(),
                              fmt::format("account {}, {} jobs known, version {}", caller->account,
                                          jobs_.book().size(), kVersion),
                              begun));
  const absl::Status probe = co_await jobs_.queue().Probe();
  co_await writer.Write(HopOf("pinhole", probe, jobs_.queue().options().address + " accepts connections", begun));
  if (!probe.ok()) {
    co_return absl::OkStatus();
  }
  begun = Clock::now();
  if (const absl::Status reached = co_await jobs_.queue().Reach(); !reached.ok()) {
    co_await writer.Write(HopOf("qserver", reached, "", begun));
    co_return absl::OkStatus();
  }
  const auto inside = jobs_.queue().Diagnose();
  proto::Hop hop;
  while (co_await inside->Read(hop)) {
    co_await writer.Write(hop);
  }
  const absl::Status status = co_await inside->Finish();
  if (!status.ok()) {
    co_await writer.Write(HopOf("qserver", status, "", begun));
  }
  co_return absl::OkStatus();
}

}  // namespace sekisho::jobmanager
