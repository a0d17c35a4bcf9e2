// SPDX-License-Identifier: Apache-2.0
#include "qserver/commands.h"

#include "qserver/errors.h"

namespace sekisho::qserver {

absl::Status Commands::Take(Request& request, identity::Time now) {
  if (now < newest_) {  // the clock was set back: what was taken before may be forgotten, as by one that has just begun
    started_ = tidied_ = now;
  }
  newest_ = now;
  const identity::Time signed_at{std::chrono::seconds(request.time_ms / 1000)};
  if (signed_at < started_) {
    return errors::SignedBeforeRestart();
  }
  if (now > tidied_) {  // what is older than the window is refused before it comes here
    tidied_ = now;
    std::erase_if(last_, [&](const auto& entry) {
      return identity::Time{std::chrono::seconds(entry.second.time_ms / 1000)} + 2 * window_ < now;
    });
  }
  identity::ReplaySet& seen =
      seen_.try_emplace(request.subject, window_, kPerSubject).first->second;
  request.is_repeat = seen.Contains(request.subject, request.id);
  if (!request.is_repeat) {
    if (const auto refusal = seen.Insert(request.subject, request.id, signed_at, now)) {
      return identity::ToStatus(*refusal);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Commands::Begin(const Request& request, const std::string& what) {
  if (const auto found = last_.find(what); found != last_.end()) {
    const Last& last = found->second;
    const bool was_it = last.subject == request.subject && last.request_id == request.id;
    const bool was_later = request.is_repeat && !last.request_id.empty() && request.time_ms <= last.time_ms;
    if (was_it || was_later) {
      return false;
    }
    if (request.time_ms < last.time_ms) {
      return errors::CommandOvertaken(what);
    }
  }
  last_[what] = {request.time_ms, request.subject, request.id};
  return true;
}

void Commands::Withdraw(const Request& request, const std::string& what) {
  last_[what] = {request.time_ms, request.subject, ""};
}

absl::StatusOr<bool> Commands::Accept(Request request, const std::string& what, identity::Time now) {
  RETURN_IF_ERROR(Take(request, now));
  return Begin(request, what);
}

}  // namespace sekisho::qserver
