// SPDX-License-Identifier: Apache-2.0
#include "qserver/end_hook.h"

#include <cstdlib>

#include "common/log.h"
#include "common/refusal.h"
#include "qserver/command.h"

namespace sekisho::qserver {
namespace {

constexpr char kName[] = "told_ends";  // the number of the last end that the program has heard of

}  // namespace

// Of jobs that had ended before there was a hook it hears nothing.
absl::Status EndHook::Restore() {
  ASSIGN_OR_RETURN(const std::string told, store_.Value(kName));
  last_ = told.empty() ? store_.next_sequence() - 1 : std::strtoull(told.c_str(), nullptr, 10);
  if (told.empty()) {
    store_.Put(kName, std::to_string(last_));
  }
  return absl::OkStatus();
}

void EndHook::OnEnd(uint64_t sequence, std::string line) {
  last_ = sequence;
  waiting_.emplace_back(sequence, std::move(line));
  if (waiting_.size() > kWaitingMost) {
    spdlog::error("{} is too slow: it does not hear of {}", program_, Printable(waiting_.front().second));
    waiting_.pop_front();
  }
  news_.Notify();
}

awaitable<void> EndHook::Run() {
  for (;;) {
    while (waiting_.empty()) {
      co_await news_.Wait();
    }
    const auto [sequence, line] = waiting_.front();
    waiting_.pop_front();
    co_await Tell(line);
    store_.Put(kName, std::to_string(sequence));
  }
}

awaitable<void> EndHook::Tell(std::string line) {
  Command command;
  command.words = {program_};
  command.environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  command.input = std::move(line);
  command.limit = limit_;
  const absl::StatusOr<CommandEnd> end = co_await RunCommand(std::move(command));
  if (!end.ok()) {
    spdlog::error("{}: {}", program_, Message(end.status()));
  } else if (end->code != 0) {
    spdlog::error("{} ended with {}: {}", program_, end->code, Printable(end->complaint.substr(0, 300)));
  }
}

}  // namespace sekisho::qserver
