// SPDX-License-Identifier: Apache-2.0
#include "qserver/commands.h"

#include "qserver/errors.h"

namespace sekisho::qserver {

absl::StatusOr<bool> Commands::Accept(const Command& command, identity::Time now) {
  identity::ReplaySet& seen =
      seen_.try_emplace(command.subject, window_, kPerSubject).first->second;
  if (seen.Contains(command.subject, command.request_id)) {
    return false;
  }
  const identity::Time signed_at{std::chrono::seconds(command.time_ms / 1000)};
  const auto last = last_ms_.find(command.job_id);
  if (!command.is_cancel && signed_at < started_) {
    return errors::SignedBeforeRestart();
  }
  if (!command.is_cancel && last != last_ms_.end() && command.time_ms < last->second) {
    return errors::CommandOvertaken(command.job_id);
  }
  if (const auto refusal = seen.Insert(command.subject, command.request_id, signed_at, now)) {
    return identity::ToStatus(*refusal);
  }
  if (!command.is_cancel) {
    // What is older than the window is refused before it comes here.
    std::erase_if(last_ms_, [&](const auto& entry) {
      return identity::Time{std::chrono::seconds(entry.second / 1000)} + 2 * window_ < now;
    });
    last_ms_[command.job_id] = command.time_ms;
  }
  return true;
}

void Commands::Withdraw(const Command& command) {
  if (const auto at = seen_.find(command.subject); at != seen_.end()) {
    at->second.Withdraw(command.subject, command.request_id);
  }
}

}  // namespace sekisho::qserver
