// SPDX-License-Identifier: Apache-2.0
// The queue's service for many jobs in one signature: docs/protocol/18-arrays.md.
#include <fmt/format.h>

#include "common/job_state.h"
#include "qserver/errors.h"
#include "qserver/many_errors.h"
#include "qserver/queue_service.h"

namespace sekisho::qserver {
namespace {

constexpr int kManyMost = 10'000;

void Refused(const absl::Status& status, proto::ManyReply::Each& each) {
  each.set_is_refused(true);
  each.set_code(int(status.code()));
  each.set_gram_code(GramCode(status));
  each.set_message(Message(status));
  each.set_remedy(Remedy(status));
}

absl::Status CheckCount(int count, const char* what) {
  return count >= 1 && count <= kManyMost
             ? absl::OkStatus()
             : errors::BadRequest(fmt::format("expected 1 to {} {}, saw {}", kManyMost, what, count));
}

}  // namespace

grpc::ServerUnaryReactor* QueueService::SubmitMany(grpc::CallbackServerContext* context,
                                                   const proto::QueueRequest* request, proto::ManyReply* reply) {
  return rpc::Unary(loop_, context, [=, this] { return HandleSubmitMany(*context, *request, *reply); });
}

grpc::ServerUnaryReactor* QueueService::CommandMany(grpc::CallbackServerContext* context,
                                                    const proto::QueueRequest* request, proto::ManyReply* reply) {
  return rpc::Unary(loop_, context, [=, this] { return HandleCommandMany(*context, *request, *reply); });
}

absl::StatusOr<Admitted> QueueService::AdmitOneOfMany(const Verified& one, const proto::SignedRequest& request,
                                                      const FindAccount& find_account, Queue::Usage& usage) const {
  const proto::RequestBody::Submit& submit = one.body.submit();
  if (submit.has_charter() || submit.has_input() || submit.dry_run() || submit.file_size() > 0 ||
      submit.awaits_credential()) {
    return errors::NotAmongMany("has a charter, input, files to stage, a credential, or is a dry run");
  }
  RETURN_IF_ERROR(CheckNew(one));
  ASSIGN_OR_RETURN(Admitted admitted, Describe(one, request, rules_, find_account));
  if (admitted.is_dry_run) {
    return errors::NotAmongMany("is a dry run");
  }
  if (conductor_.queue().Find(one.job_id) == nullptr) {
    RETURN_IF_ERROR(CheckLife(one, admitted, rules_, judges_.now()).status());
    RETURN_IF_ERROR(CheckRoom(usage, admitted, rules_));
    RETURN_IF_ERROR(conductor_.queue().CheckAfter(admitted));
    ++usage.live;
    usage.bytes += admitted.submitted.ByteSizeLong();
  }
  admitted.submitted.set_gatekeeper_subject(admitted.gatekeeper_subject);
  admitted.submitted.set_asked(admitted.asked);
  return admitted;
}

awaitable<absl::Status> QueueService::HandleSubmitMany(grpc::CallbackServerContext& context,
                                                       const proto::QueueRequest& request,
                                                       proto::ManyReply& reply) {
  // Validate.
  CO_RETURN_IF_ERROR(JudgeCaller(context, request.account()));
  CO_ASSIGN_OR_RETURN(const Verified many, Judge(request));
  const int count = many.body.submit_many().job_size();
  CO_RETURN_IF_ERROR(CheckCount(count, "submissions"));

  // Judge each.  The first that is admitted keeps the signed request for all.
  Queue::Usage usage = conductor_.queue().UsageOf(many.identity.subject);
  std::vector<Admitted> admitted;
  std::vector<int> taken;  // their places
  const proto::SignedRequest none;
  const absl::StatusOr<Account> account = judges_.find_account(many.account);  // of all: not a look-up for each
  const FindAccount find_account = [&account](const std::string&) { return account; };
  for (int index = 0; index < count; ++index) {
    proto::ManyReply::Each& each = *reply.add_each();
    const Verified of_many = OneOfMany(many, index, rules_);
    each.set_job_id(of_many.job_id);
    absl::StatusOr<Admitted> one = AdmitOneOfMany(of_many, admitted.empty() ? request.request() : none, find_account, usage);
    if (!one.ok()) {
      Refused(one.status(), each);
      continue;
    }
    one->submitted.set_first_of_many(admitted.empty() ? one->job_id : admitted[0].job_id);
    each.set_commit_within_s(one->commit_within_s);
    admitted.push_back(*std::move(one));
    taken.push_back(index);
  }

  // Act.
  const std::vector<absl::StatusOr<bool>> results = co_await conductor_.SubmitMany(std::move(admitted));

  // Answer.
  for (size_t i = 0; i < taken.size(); ++i) {
    proto::ManyReply::Each& each = *reply.mutable_each(taken[i]);
    if (!results[i].ok()) {
      Refused(results[i].status(), each);
      continue;
    }
    each.set_is_repeat(*results[i]);
    CO_RETURN_IF_ERROR(co_await CancelIfAsked(many.identity.subject, each.job_id()));
  }
  trimmer_.Soon();
  co_return absl::OkStatus();
}

awaitable<absl::Status> QueueService::HandleCommandMany(grpc::CallbackServerContext& context,
                                                        const proto::QueueRequest& request,
                                                        proto::ManyReply& reply) {
  // Validate.
  CO_RETURN_IF_ERROR(JudgeCaller(context, request.account()));
  CO_ASSIGN_OR_RETURN(const Verified many, Judge(request));
  const proto::RequestBody::CommandMany& command = many.body.command_many();
  CO_RETURN_IF_ERROR(CheckCount(command.job_id_size(), "jobs"));

  // Act and answer, each as if it had come alone, but for the memory of what was said: a request is one.
  Commands::Request once = RequestOf(many);
  if (command.number() != 1) {
    CO_RETURN_IF_ERROR(CheckFresh(many, rules_, judges_.now()));
    CO_RETURN_IF_ERROR(commands_.Take(once, judges_.now()));
  }
  for (int index = 0; index < command.job_id_size(); ++index) {
    Verified one;
    one.identity = many.identity;
    one.account = many.account;
    one.body.set_request_id(fmt::format("{}.{}", many.body.request_id(), index));
    one.body.set_time_ms(many.body.time_ms());
    if (command.number() == 1) {
      one.body.mutable_cancel()->set_job_id(command.job_id(index));
    } else {
      one.body.mutable_signal()->set_job_id(command.job_id(index));
      one.body.mutable_signal()->set_number(command.number());
      one.body.mutable_signal()->set_argument(command.argument());
    }
    proto::ManyReply::Each& each = *reply.add_each();
    each.set_job_id(command.job_id(index));
    const absl::StatusOr<proto::JobState> state = Obey(one, once);
    if (state.ok()) {
      each.set_state(*state);
    } else {
      Refused(state.status(), each);
    }
  }
  co_return co_await conductor_.Durable();
}

}  // namespace sekisho::qserver
