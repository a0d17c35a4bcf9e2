// SPDX-License-Identifier: Apache-2.0
#include "agent/errors.h"

#include <fmt/format.h>

#include "agent/task/spec.h"
#include "common/refusal.h"

namespace sekisho::agent::errors {

absl::Status NoSuchAccount(const std::string& account) {
  return absl::NotFoundError(fmt::format("this node has no account \"{}\"", account));
}
absl::Status CannotLookUp(const std::string& account, const std::string& why) {
  return absl::UnavailableError(fmt::format("cannot look up account \"{}\": {}", account, why));
}
absl::Status RootAccount(const std::string& account) {
  return absl::PermissionDeniedError(fmt::format("tasks never run as root: account {}", account));
}
absl::Status BadVariable(const std::string& name) {
  return absl::InvalidArgumentError(fmt::format("\"{}\" cannot be the name of a variable", name));
}
absl::Status BadFileName(const std::string& name) {
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" cannot be the name of a task's file", name));
}
absl::Status HoldsNul(const std::string& what) {
  return absl::InvalidArgumentError(fmt::format("{} holds a NUL character", what));
}
absl::Status BadDirectory(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(fmt::format("cannot use directory {}: {}", path, why));
}
absl::Status NoSupervisor(const std::string& program, const std::string& why) {
  return absl::InternalError(fmt::format("cannot start {}: {}", program, why));
}
absl::Status NoLauncher(const std::string& program, const std::string& why) {
  return Refuse(absl::StatusCode::kFailedPrecondition, task::kNoMpirun,
                fmt::format("{}, with which mpirun starts its ranks, cannot be executed: {}", program, why),
                "install it there whole, or name it by mpi.remote_shell in the queue server's configuration");
}
absl::Status NotOwnTask(const std::string& job_id) {
  return absl::PermissionDeniedError(
      fmt::format("no task of job \"{}\" with this token runs on this node", job_id));
}
absl::Status NoBegin() {
  return absl::InvalidArgumentError("a launch begins with Begin, within 10 s, and names its id");
}
absl::Status NotConnected() {
  return absl::UnavailableError("this node's agent has no connection to its queue server");
}
absl::Status BadOffset(uint64_t offset) {
  return absl::InvalidArgumentError(fmt::format("no input begins at {}", offset));
}
absl::Status OldServer() {
  return absl::FailedPreconditionError("the connection was lost, and the queue server is too old to take a helper up again");
}
absl::Status LaunchIsOpen(uint64_t id) {
  return absl::UnavailableError(fmt::format("another connection to this node's agent has launch {} open", id));
}
absl::Status SayItAgain() { return absl::UnavailableError("what was on its way may be lost: say the launch again"); }
absl::Status NodeLost(const std::string& node) {
  return absl::UnavailableError(fmt::format("the connection to node {} was lost", node));
}

}  // namespace sekisho::agent::errors
