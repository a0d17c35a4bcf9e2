// SPDX-License-Identifier: Apache-2.0
// Every error of an agent that a user or an operator can meet.  What a task's start itself runs
// into is worded in task/start.cc.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"

namespace sekisho::agent::errors {

absl::Status NoSuchAccount(const std::string& account);
absl::Status CannotLookUp(const std::string& account, const std::string& why);
absl::Status RootAccount(const std::string& account);
absl::Status BadVariable(const std::string& name);
absl::Status BadFileName(const std::string& name);
absl::Status HoldsNul(const std::string& what);
absl::Status BadDirectory(const std::string& path, const std::string& why);
absl::Status NoSupervisor(const std::string& program, const std::string& why);
absl::Status NoLauncher(const std::string& program, const std::string& why);
absl::Status NotOwnTask(const std::string& job_id);
absl::Status NoBegin();
absl::Status NotConnected();
absl::Status BadOffset(uint64_t offset);
absl::Status OldServer();
absl::Status LaunchIsOpen(uint64_t id);
absl::Status SayItAgain();
absl::Status NodeLost(const std::string& node);

}  // namespace sekisho::agent::errors
