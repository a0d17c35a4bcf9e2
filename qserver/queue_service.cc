// SPDX-License-Identifier: Apache-2.0
#include "qserver/queue_service.h"

#include <map>

#include <fmt/format.h>

#include "common/asked.h"
#include "common/daemon.h"
#include "common/job_state.h"
#include "common/log.h"
#include "qserver/engine.h"
#include "qserver/errors.h"
#include "qserver/redirection.h"

namespace sekisho::qserver {
namespace {

constexpr size_t kEventsAtOnce = 256;
constexpr size_t kGroupBytes = 256 << 10;  // and one event more
constexpr int kStdioUpdate = 7;  // of GRAM's signals

std::string SizeText(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// False: the jobmanager has gone.
awaitable<bool> Say(rpc::Writer<proto::EventGroup>& writer, proto::EventGroup group) {
  return writer.Write(std::move(group));
}
awaitable<bool> Say(rpc::Writer<proto::JobEvent>& writer, proto::EventGroup group) {
  bool is_there = true;
  for (auto event = group.mutable_event()->begin(); is_there && event != group.mutable_event()->end(); ++event) {
    is_there = co_await writer.Write(std::move(*event));
  }
  co_return is_there;
}

}  // namespace

grpc::ServerUnaryReactor* QueueService::Submit(grpc::CallbackServerContext* context,
                                               const proto::QueueRequest* request,
                                               proto::SubmitReply* reply) {
  return rpc::Unary(loop_, context, [=, this] { return HandleSubmit(*context, *request, *reply); });
}

absl::Status QueueService::JudgeCaller(const grpc::CallbackServerContext& context, const std::string& account) const {
  ASSIGN_OR_RETURN(const Jobmanager caller, judges_.caller(context));
  return caller.Has(account) ? absl::OkStatus() : errors::OtherAccount(caller.account, Printable(account));
}

absl::StatusOr<Verified> QueueService::Judge(const proto::QueueRequest& request) const {
  ASSIGN_OR_RETURN(Verified verified, judges_.request(request));
  RETURN_IF_ERROR(conductor_.restrictions().Check(verified.identity.subject));
  return verified;
}

absl::StatusOr<const Job*> QueueService::FindFor(const grpc::CallbackServerContext& context,
                                                 const std::string& job_id) const {
  ASSIGN_OR_RETURN(const Jobmanager caller, judges_.caller(context));
  const Job* job = conductor_.queue().Find(job_id);
  if (job == nullptr || !caller.Has(job->status.account())) {
    return errors::NoSuchJob(Printable(job_id));
  }
  return job;
}

awaitable<absl::Status> QueueService::HandleSubmit(grpc::CallbackServerContext& context,
                                                   const proto::QueueRequest& request,
                                                   proto::SubmitReply& reply) {
  // Validate.
  CO_RETURN_IF_ERROR(JudgeCaller(context, request.account()));
  CO_ASSIGN_OR_RETURN(const Verified verified, Judge(request));
  if (!verified.body.has_submit()) {
    co_return errors::BadRequest("expected a submission");
  }
  reply.set_site(rules_.site);
  reply.set_account(verified.account);
  reply.set_job_id(verified.job_id);
  CO_RETURN_IF_ERROR(CheckNew(verified));
  CO_ASSIGN_OR_RETURN(Admitted admitted,
                      Describe(verified, request.request(), rules_, judges_.find_account));
  if (conductor_.queue().Find(verified.job_id) == nullptr) {
    CO_ASSIGN_OR_RETURN(const std::string warning, CheckLife(verified, admitted, rules_, judges_.now()));
    if (!warning.empty()) {
      reply.add_warning(warning);
    }
  }

  // Act.
  const int64_t commit_within_s = admitted.commit_within_s;
  if (admitted.is_dry_run) {
    CO_RETURN_IF_ERROR(co_await conductor_.CheckOnNode(std::move(admitted)));
    reply.set_dry_run(true);
    reply.clear_job_id();
    co_return absl::OkStatus();
  }
  if (conductor_.queue().Find(verified.job_id) == nullptr) {
    CO_RETURN_IF_ERROR(
        CheckRoom(conductor_.queue().UsageOf(verified.identity.subject), admitted, rules_));
    CO_RETURN_IF_ERROR(conductor_.queue().CheckAfter(admitted));
  }
  CO_ASSIGN_OR_RETURN(const bool is_repeat, co_await conductor_.Submit(std::move(admitted)));
  CO_RETURN_IF_ERROR(co_await CancelIfAsked(verified.identity.subject, verified.job_id));

  // Answer.
  reply.set_is_repeat(is_repeat);
  if (is_repeat) {
    reply.add_warning(KnownAlready(rules_.site, verified.job_id));
  }
  reply.set_commit_within_s(commit_within_s);
  co_return absl::OkStatus();
}

absl::Status QueueService::CheckNew(const Verified& verified) const {
  if (conductor_.queue().Find(verified.job_id) != nullptr) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckFresh(verified, rules_, judges_.now()));
  return cancelled_early_.Contains(verified.identity.subject, verified.job_id)
             ? errors::CancelledBefore(verified.job_id)
             : absl::OkStatus();
}

// While it was being accepted.
awaitable<absl::Status> QueueService::CancelIfAsked(std::string subject, std::string job_id) {
  if (!cancelled_early_.Contains(subject, job_id)) {
    co_return absl::OkStatus();
  }
  proto::RequestBody cancel;
  cancel.mutable_cancel()->set_job_id(job_id);
  CO_RETURN_IF_ERROR(conductor_.Command(cancel).status());
  co_return co_await conductor_.Durable();
}

grpc::ServerUnaryReactor* QueueService::Command(grpc::CallbackServerContext* context,
                                                const proto::QueueRequest* request,
                                                proto::CommandReply* reply) {
  return rpc::Unary(loop_, context,
                    [=, this] { return HandleCommand(*context, *request, *reply); });
}

awaitable<absl::Status> QueueService::HandleCommand(grpc::CallbackServerContext& context,
                                                    const proto::QueueRequest& request,
                                                    proto::CommandReply& reply) {
  // Validate.
  CO_RETURN_IF_ERROR(JudgeCaller(context, request.account()));
  CO_ASSIGN_OR_RETURN(const Verified verified, Judge(request));
  if (verified.body.has_delegate()) {
    co_return co_await HandleDelegate(verified, reply);
  }
  if (!verified.body.has_cancel() && !verified.body.has_signal()) {
    co_return errors::BadRequest("expected a cancellation, a signal or a delegation");
  }
  Commands::Request once = RequestOf(verified);
  if (!verified.body.has_cancel()) {
    CO_RETURN_IF_ERROR(CheckFresh(verified, rules_, judges_.now()));
    CO_RETURN_IF_ERROR(commands_.Take(once, judges_.now()));
  }
  CO_ASSIGN_OR_RETURN(const proto::JobState state, Obey(verified, once));

  // Answer.
  CO_RETURN_IF_ERROR(co_await conductor_.Durable());
  reply.set_state(state);
  co_return absl::OkStatus();
}

Commands::Request QueueService::RequestOf(const Verified& verified) {
  return {verified.identity.subject, verified.body.request_id(), verified.body.time_ms()};
}

absl::StatusOr<proto::JobState> QueueService::Obey(const Verified& verified, const Commands::Request& request) {
  // Look up.
  const std::string job_id = verified.body.has_cancel() ? verified.body.cancel().job_id()
                                                        : verified.body.signal().job_id();
  const std::string& subject = verified.identity.subject;
  const identity::Time signed_at{std::chrono::seconds(verified.body.time_ms() / 1000)};
  const Job* job = conductor_.queue().FindOrArray(job_id, subject);
  // An old cancel can only end what its owner wanted to end: a job lives once.
  if (job == nullptr || !verified.body.has_cancel()) {
    RETURN_IF_ERROR(CheckFresh(verified, rules_, judges_.now()));
  }
  if (job == nullptr) {
    if (verified.body.has_cancel() && IsJobId(job_id) &&
        !cancelled_early_.Contains(subject, job_id)) {
      // Its submission may still be under way on another connection.
      if (const auto refusal = cancelled_early_.Insert(subject, job_id, signed_at, judges_.now())) {
        return identity::ToStatus(*refusal);
      }
    }
    return errors::NoSuchJob(Printable(job_id));
  }

  // Act once: what a broken machine on the way recorded and sends again is answered, not done.  A cancel said
  // again changes nothing.
  if (verified.body.has_cancel()) {
    return IsFinal(job->status.state()) ? job->status.state() : conductor_.Command(verified.body);
  }
  ASSIGN_OR_RETURN(const bool is_new, commands_.Begin(request, job_id));
  if (!is_new) {
    return conductor_.queue().StatusOf(job_id).state();
  }
  const bool redirects = verified.body.signal().number() == kStdioUpdate;
  const absl::StatusOr<proto::JobState> state =
      redirects ? Redirect(verified, *job) : conductor_.Command(verified.body);
  if (!state.ok()) {
    commands_.Withdraw(request, job_id);
  }
  return state;
}

absl::StatusOr<proto::JobState> QueueService::Redirect(const Verified& verified, const Job& job) {
  // Validate.
  ASSIGN_OR_RETURN(const Account account, judges_.find_account(verified.account));
  ASSIGN_OR_RETURN(const rsl::JobDescription update, DescribeUpdate(verified, job, rules_, account));
  ASSIGN_OR_RETURN(const proto::JobEvent::Redirected redirected,
                   JudgeRedirection(job, update, account.home, rules_.staging));
  if (conductor_.queue().UsageOf(job.status.subject()).bytes + redirected.ByteSizeLong() > rules_.kept_bytes_max) {
    return errors::TooManyBytes(rules_.kept_bytes_max);
  }

  // Act.
  const std::string& job_id = job.status.job_id();
  conductor_.Change([&](Queue& queue) { return queue.Redirect(job_id, redirected, Conductor::NowMs()); });
  return conductor_.queue().StatusOf(job_id).state();
}

template <typename Writer>
awaitable<absl::Status> QueueService::HandleEvents(grpc::CallbackServerContext& context, Writer& writer,
                                                   proto::EventsRequest request) {
  CO_RETURN_IF_ERROR(JudgeCaller(context, request.account()));
  const auto changed = conductor_.AccountSignal(request.account());
  uint64_t at = request.after_sequence();
  proto::EventGroup group;
  group.add_event();  // the stream stands
  for (;;) {
    const bool is_there = co_await Say(writer, std::exchange(group, {}));
    if (!is_there) {
      co_return absl::CancelledError("the jobmanager has gone");
    }
    while (group.event().empty()) {
      CO_ASSIGN_OR_RETURN(std::vector<Journal::Found> events,
                          co_await conductor_.Complete(conductor_.journal().After(request.account(), at, kEventsAtOnce)));
      if (events.empty()) {
        co_await changed->Wait();
      }
      size_t bytes = 0;
      for (auto found = events.begin(); found != events.end() && bytes < kGroupBytes; ++found) {
        at = found->event.sequence();
        if (!found->is_cut) {  // else it was forgotten meanwhile
          bytes += found->event.ByteSizeLong();
          *group.add_event() = std::move(found->event);
        }
      }
    }
  }
}

grpc::ServerWriteReactor<proto::JobEvent>* QueueService::Events(
    grpc::CallbackServerContext* context, const proto::EventsRequest* request) {
  return rpc::Stream<proto::JobEvent>(loop_, [this, context, request = *request](auto& writer) {
    return HandleEvents(*context, writer, request);
  });
}

grpc::ServerWriteReactor<proto::EventGroup>* QueueService::EventGroups(
    grpc::CallbackServerContext* context, const proto::EventsRequest* request) {
  return rpc::Stream<proto::EventGroup>(loop_, [this, context, request = *request](auto& writer) {
    return HandleEvents(*context, writer, request);
  });
}

grpc::ServerUnaryReactor* QueueService::Status(grpc::CallbackServerContext* context,
                                               const proto::StatusRequest* request,
                                               proto::StatusReply* reply) {
  return rpc::Unary(loop_, context, [=, this] { return HandleStatus(*context, *request, *reply); });
}

awaitable<absl::Status> QueueService::HandleStatus(grpc::CallbackServerContext& context,
                                                   const proto::StatusRequest& request,
                                                   proto::StatusReply& reply) {
  CO_ASSIGN_OR_RETURN(const Jobmanager caller, judges_.caller(context));
  for (const std::string& job_id : request.job_id()) {
    const Job* job = conductor_.queue().FindOrArray(job_id);
    const bool is_known = job != nullptr && caller.Has(job->status.account());
    if (!is_known || !request.unknown_only()) {
      proto::JobStatus& status = *reply.add_job();
      status = conductor_.queue().StatusOf(is_known ? job_id : "");
      status.set_job_id(job_id);
    } else if (job->status.job_id() == job_id) {  // no element that is yet to be
      proto::JobStatus& brief = *reply.add_job();
      brief.set_job_id(job_id);
      brief.set_state(job->status.state());
      brief.set_cancelling(job->status.cancelling());
      brief.set_is_held(job->status.is_held());
    }
  }
  co_return absl::OkStatus();
}

grpc::ServerUnaryReactor* QueueService::Site(grpc::CallbackServerContext* context,
                                             const proto::SiteRequest*, proto::SiteInfo* reply) {
  return rpc::Unary(loop_, context, [=, this] { return HandleSite(*context, *reply); });
}

awaitable<absl::Status> QueueService::HandleSite(grpc::CallbackServerContext& context,
                                                 proto::SiteInfo& reply) {
  CO_RETURN_IF_ERROR(judges_.caller(context).status());
  CO_ASSIGN_OR_RETURN(const proto::InventoryReply inventory,
                      co_await conductor_.allocator().Inventory());

  std::map<std::string, int> busy = conductor_.queue().BusyByNode();
  reply.set_site(rules_.site);
  reply.set_version(kVersion);
  for (const proto::NodeInfo& known : inventory.node()) {
    proto::NodeInfo& node = *reply.add_node();
    node = known;
    node.set_busy(busy[known.name()]);
    if (const auto at = conductor_.nodes().find(known.name()); at != conductor_.nodes().end()) {
      const auto& [name, link] = *at;
      node.set_is_up(true);
      node.set_load(link.load.load());
      if (node.memory_mb() == 0) node.set_memory_mb(link.hello.memory_mb());
      if (node.architecture().empty()) node.set_architecture(link.hello.architecture());
      if (node.os().empty()) node.set_os(link.hello.os());
      node.set_version(link.hello.version());
    }
    node.set_drained(conductor_.restrictions().WhyDrained(known.name()));
  }
  reply.set_drained(conductor_.restrictions().WhyDrained(""));
  reply.set_queued_jobs(int(conductor_.queue().pending_count()));
  reply.set_running_jobs(int(conductor_.queue().running_count()));
  reply.add_service("jobmanager-agent");
  if (conductor_.has_engine()) {
    reply.add_service(std::string(kEngineService));
  }
  *reply.mutable_queue() = inventory.queue();
  reply.mutable_relay()->set_address(rules_.relay.address);
  reply.mutable_relay()->set_is_only_way(!rules_.relay.inner.empty());
  co_return absl::OkStatus();
}

grpc::ServerWriteReactor<proto::Hop>* QueueService::Diagnose(grpc::CallbackServerContext* context,
                                                             const proto::DiagnoseRequest*) {
  return rpc::Stream<proto::Hop>(
      loop_, [this, context](auto& writer) { return HandleDiagnose(*context, writer); });
}

awaitable<absl::Status> QueueService::HandleDiagnose(grpc::CallbackServerContext& context,
                                                     rpc::Writer<proto::Hop>& writer) {
  CO_RETURN_IF_ERROR(judges_.caller(context).status());
  proto::Hop hop;
  hop.set_name("qserver");
  hop.set_is_ok(true);
  hop.set_detail(fmt::format("{} running, {} queued",
                             SizeText(int(conductor_.queue().running_count()), "job"),
                             conductor_.queue().pending_count()));
  co_await writer.Write(hop);

  const auto asked = std::chrono::steady_clock::now();
  const absl::StatusOr<proto::InventoryReply> inventory =
      co_await conductor_.allocator().Inventory();
  hop.Clear();
  hop.set_name("allocator");
  hop.set_is_ok(inventory.ok());
  hop.set_milliseconds(
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - asked).count());
  if (!inventory.ok()) {
    hop.set_detail(Message(inventory.status()));
    hop.set_remedy("start sekisho-allocator on the queue server's host, and see its log");
    co_await writer.Write(hop);
    co_return absl::OkStatus();
  }
  hop.set_detail(
      fmt::format("{}, policy {}", SizeText(inventory->node_size(), "node"), inventory->policy()));
  co_await writer.Write(hop);

  for (const proto::NodeInfo& node : inventory->node()) {
    const auto at = conductor_.nodes().find(node.name());
    hop.Clear();
    hop.set_name("agent " + node.name());
    hop.set_is_ok(at != conductor_.nodes().end());
    if (hop.is_ok()) {
      hop.set_detail(fmt::format("attached, version {}", at->second.hello.version()));
    } else {
      hop.set_detail("not attached");
      hop.set_remedy("start sekisho-agent on the node; see its log and the queue server's");
    }
    co_await writer.Write(hop);
  }
  co_return absl::OkStatus();
}

}  // namespace sekisho::qserver
