// SPDX-License-Identifier: Apache-2.0
// What a site's administrators ask: docs/protocol/5-queue.md, "Administration".
#include <algorithm>

#include <fmt/format.h>

#include "common/identity/dn.h"
#include "common/job_state.h"
#include "common/log.h"
#include "qserver/administer.h"
#include "qserver/administer_errors.h"
#include "qserver/errors.h"
#include "qserver/queue_service.h"

namespace sekisho::qserver {

grpc::ServerUnaryReactor* QueueService::Administer(grpc::CallbackServerContext* context,
                                                   const proto::QueueRequest* request,
                                                   proto::AdministerReply* reply) {
  return rpc::Unary(loop_, context, [=, this] { return HandleAdminister(*context, *request, *reply); });
}

awaitable<absl::Status> QueueService::HandleAdminister(grpc::CallbackServerContext& context,
                                                       const proto::QueueRequest& request,
                                                       proto::AdministerReply& reply) {
  // Validate.
  CO_RETURN_IF_ERROR(JudgeCaller(context, request.account()));
  CO_ASSIGN_OR_RETURN(const Verified verified, Judge(request));
  const proto::RequestBody::Administer& word = verified.body.administer();
  CO_RETURN_IF_ERROR(CheckAdministrator(verified, rules_, judges_.now()));
  if (audit_) {
    audit_("").IgnoreError();  // what waits for room: the repeat of a word that lifts something comes no further
  }
  if (word.has_show()) {
    reply = conductor_.restrictions().Show();
    co_return absl::OkStatus();
  }
  std::set<std::string> nodes;
  if (word.has_drain() && !word.drain().node().empty()) {
    CO_ASSIGN_OR_RETURN(const proto::InventoryReply inventory, co_await conductor_.allocator().Inventory());
    for (const proto::NodeInfo& node : inventory.node()) {
      nodes.insert(node.name());
    }
  }
  CO_RETURN_IF_ERROR(CheckWord(word, rules_, [&](const std::string& node) { return nodes.count(node) > 0; }));
  CO_RETURN_IF_ERROR(CheckNow(word));

  // Act once: a recorded word must not end what runs there when the node has come back and gone again.
  const std::string& subject = verified.identity.subject;
  CO_ASSIGN_OR_RETURN(const bool is_new, commands_.Accept(RequestOf(verified), ObjectOf(word), judges_.now()));
  if (!is_new) {
    CO_RETURN_IF_ERROR(audit_ ? audit_("") : absl::OkStatus());  // it was obeyed, perhaps without its line
    co_return co_await conductor_.Durable();
  }
  const std::vector<std::string> jobs = ObeyAdministrator(word, subject);

  // Write down, answer.
  const std::string line = AuditLine(word, subject, verified.body.request_id(), jobs, Conductor::NowMs());
  spdlog::warn("administrator's word: {}", Printable(line.substr(0, line.size() - 1)));
  if (audit_) {
    CO_RETURN_IF_ERROR(audit_(line));
  }
  CO_RETURN_IF_ERROR(co_await conductor_.Durable());
  reply.mutable_job_id()->Assign(jobs.begin(), jobs.end());
  co_return absl::OkStatus();
}

// Whether it can be done as things are.
absl::Status QueueService::CheckNow(const proto::RequestBody::Administer& word) const {
  const proto::AdministerReply all = conductor_.restrictions().Show();
  if (word.has_lost() && conductor_.nodes().count(word.lost().node()) > 0) {
    return errors::NodeIsThere(word.lost().node());
  }
  if (word.has_kill() && conductor_.queue().FindOrArray(word.kill().job_id()) == nullptr) {
    return errors::NoSuchJob(Printable(word.kill().job_id()));
  }
  if (word.has_ban() && word.ban().lift() && conductor_.restrictions().Check(word.ban().subject()).ok()) {
    return errors::NotBanned(word.ban().subject());
  }
  if (word.has_drain() && word.drain().lift()) {
    const std::string& node = word.drain().node();
    const bool is_drained = std::any_of(all.drained().begin(), all.drained().end(),
                                        [&](const auto& drained) { return drained.node() == node; });
    return is_drained ? absl::OkStatus() : errors::NotDrained(node);
  }
  return absl::OkStatus();
}

std::vector<std::string> QueueService::ObeyAdministrator(const proto::RequestBody::Administer& word,
                                                         const std::string& by) {
  std::vector<std::string> jobs;
  if (word.has_lost()) {
    const std::string& node = word.lost().node();
    jobs = conductor_.queue().JobsOn(node);
    conductor_.Change([&](Queue& queue) {
      return queue.DeclareLost(node, fmt::format("node {} was declared lost by {}", node, by), Conductor::NowMs());
    });
  } else if (word.has_ban()) {
    conductor_.Restrict([&](Restrictions& restrictions) {
      if (word.ban().lift()) {
        restrictions.LiftBan(word.ban().subject());
        return;
      }
      Restrictions::Banned banned;
      banned.set_subject(word.ban().subject());
      banned.set_reason(word.ban().reason());
      banned.set_by(by);
      banned.set_since_ms(Conductor::NowMs());
      restrictions.Ban(std::move(banned));
    });
    if (!word.ban().lift() && !word.ban().keep_jobs()) {
      jobs = conductor_.queue().LiveJobsOf(identity::NormalizeDn(word.ban().subject()));
      Kill(jobs, fmt::format("{} was banned by {}", word.ban().subject(), by), word.ban().reason());
    }
  } else if (word.has_drain()) {
    conductor_.Restrict([&](Restrictions& restrictions) {
      if (word.drain().lift()) {
        restrictions.LiftDrain(word.drain().node());
        return;
      }
      Restrictions::Drained drained;
      drained.set_node(word.drain().node());
      drained.set_reason(word.drain().reason());
      drained.set_by(by);
      drained.set_since_ms(Conductor::NowMs());
      restrictions.Drain(std::move(drained));
    });
    jobs = word.drain().lift() ? jobs : conductor_.queue().JobsOn(word.drain().node());
  } else if (!IsFinal(conductor_.queue().StatusOf(word.kill().job_id()).state())) {
    jobs = {word.kill().job_id()};
    Kill(jobs, fmt::format("ended by {}", by), word.kill().reason());
  }
  return jobs;
}

void QueueService::Kill(const std::vector<std::string>& jobs, const std::string& what, const std::string& why) {
  const std::string reason = why.empty() ? what : what + ": " + why;
  for (const std::string& job_id : jobs) {
    conductor_.Change([&](Queue& queue) {
      absl::StatusOr<Effects> effects = queue.Cancel(job_id, reason, Conductor::NowMs());
      return effects.ok() ? *std::move(effects) : Effects();
    });
  }
}

}  // namespace sekisho::qserver
