// SPDX-License-Identifier: Apache-2.0
// The conductor's half about the site's relay: tokens for tasks that start, and later ones as long as they run.
#include "common/log.h"
#include "common/refusal.h"
#include "qserver/conductor.h"
#include "qserver/relay_tokens.h"

namespace sekisho::qserver {
namespace {

constexpr size_t kJobsAtOnce = 8;  // each is two signatures; others wait for the loop

identity::Time Now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

// To relays a program over several sites is one job, whichever of them signs its tokens.
const std::string& RelayName(const Job& job) {
  return job.charter() && !job.charter()->relay().empty() ? job.charter()->world() : job.status.job_id();
}

RelayTokens::Job KnownToRelay(const Job& job) {
  RelayTokens::Job known{RelayName(job), job.status.subject(), {}};
  if (job.charter() && job.charter()->encrypt()) {
    known.speakers.insert(job.charter()->speaker().begin(), job.charter()->speaker().end());
  }
  return known;
}

}  // namespace

void Conductor::SetRelay(RelayTokens& tokens) {
  relay_ = &tokens;
  renewal_.emplace(tokens.life());
}

void Conductor::AddRelay(proto::ServerMessage::Start& start) {
  const Job* job = relay_ != nullptr ? queue_.Find(start.task().job_id()) : nullptr;
  if (job == nullptr || start.check_only()) {
    return;
  }
  const identity::Time now = Now();
  if (const absl::Status status = relay_->AddTo(start, KnownToRelay(*job), now); !status.ok()) {
    spdlog::error("no token for the relay job={}: {}", job->status.job_id(), Message(status));
    return;
  }
  renewal_->OnStarted(job->status.job_id(), now);
}

void Conductor::ForgetTokens(const Job& ended) {
  if (relay_ != nullptr) {
    relay_->Forget(RelayName(ended));
    renewal_->OnEnded(ended.status.job_id());
  }
}

// What it should have been given meanwhile is lost.
void Conductor::NoteReturn(const proto::AgentMessage::Hello& hello) {
  for (int i = 0; relay_ != nullptr && i < hello.held_size(); ++i) {
    const Job* job = queue_.Find(hello.held(i).job_id());
    if (job != nullptr && job->has_processors) {
      renewal_->OnReturned(hello.held(i).job_id());
    }
  }
}

awaitable<void> Conductor::RenewRelay() {
  for (;;) {
    std::chrono::milliseconds wait = renewal_->Interval();
    if (RenewTokens(Now())) {
      wait = std::chrono::milliseconds(20);
    }
    co_await Sleep(loop_, wait);
  }
}

bool Conductor::RenewTokens(identity::Time now) {
  const std::vector<std::string> due = renewal_->Due(now, kJobsAtOnce);
  for (const std::string& job_id : due) {
    if (const absl::Status status = RenewTokensOf(job_id, now); !status.ok()) {
      spdlog::error("no later token for the relay job={}: {}", job_id, Message(status));
      renewal_->OnFailed(job_id, now);
    } else {
      renewal_->OnRenewed(job_id, now);
    }
  }
  return due.size() == kJobsAtOnce;
}

// A node that is away gets its own when it is back.
absl::Status Conductor::RenewTokensOf(const std::string& job_id, identity::Time now) {
  const Job* job = queue_.Find(job_id);
  if (job == nullptr) {
    return absl::OkStatus();
  }
  for (const TokenHolder& holder : TokenHolders(*job)) {
    const auto node = nodes_.find(holder.node);
    if (node == nodes_.end()) {
      continue;
    }
    proto::ServerMessage message;
    proto::ServerMessage::Start& files = *message.mutable_start();
    files.mutable_task()->set_job_id(job_id);
    files.mutable_task()->set_task(holder.task);
    RETURN_IF_ERROR(relay_->AddFilesTo(files, KnownToRelay(*job), now));
    node->second.send(std::move(message));
  }
  return absl::OkStatus();
}

}  // namespace sekisho::qserver
