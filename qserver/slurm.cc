// SPDX-License-Identifier: Apache-2.0
#include "qserver/slurm.h"

#include <fmt/format.h>

#include "common/log.h"
#include "qserver/command.h"

namespace sekisho::qserver {
namespace {

absl::Status Complaint(const Command& command, const CommandEnd& end) {
  return absl::UnavailableError(fmt::format("{} ended with {}: {}", command.words[0], end.code,
                                            Printable(end.complaint.substr(0, 300))));
}

}  // namespace

awaitable<absl::StatusOr<std::string>> Slurm::Submit(EngineRequest request) {
  CO_RETURN_IF_ERROR(CheckNames(request));
  Command command;
  CO_ASSIGN_OR_RETURN(command.as, FindRunAs(request.account));
  command.words = SubmitWords(request, settings_, false);
  command.limit = std::chrono::seconds(20);  // sbatch would wait for its controller for ever
  command.environment = SlurmEnvironment(settings_);
  command.input = BatchScript(request, settings_);
  CO_ASSIGN_OR_RETURN(const CommandEnd end, co_await RunCommand(std::move(command)));
  if (end.code != 0) {
    co_return SubmitRefusal(end.complaint, end.code);
  }
  co_return ParseJobNumber(end.output);
}

awaitable<absl::Status> Slurm::Check(EngineRequest request) {
  CO_RETURN_IF_ERROR(CheckNames(request));
  Command command;
  CO_ASSIGN_OR_RETURN(command.as, FindRunAs(request.account));
  command.words = SubmitWords(request, settings_, true);
  command.limit = std::chrono::seconds(20);
  command.environment = SlurmEnvironment(settings_);
  command.input = BatchScript(request, settings_);
  CO_ASSIGN_OR_RETURN(const CommandEnd end, co_await RunCommand(std::move(command)));
  co_return end.code == 0 ? absl::OkStatus() : SubmitRefusal(end.complaint, end.code);
}

awaitable<absl::Status> Slurm::Cancel(std::string job_id, std::string account) {
  Command command;
  CO_ASSIGN_OR_RETURN(command.as, FindRunAs(account));
  command.words = CancelWords(job_id, account, settings_);
  command.environment = SlurmEnvironment(settings_);
  CO_ASSIGN_OR_RETURN(const CommandEnd end, co_await RunCommand(command));
  co_return end.code == 0 ? absl::OkStatus() : Complaint(command, end);
}

awaitable<absl::StatusOr<std::map<std::string, EngineState>>> Slurm::Query() {
  Command command;
  command.words = QueryWords(settings_);
  command.environment = SlurmEnvironment(settings_);
  CO_ASSIGN_OR_RETURN(const CommandEnd end, co_await RunCommand(command));
  if (end.code != 0) {
    co_return Complaint(command, end);
  }
  co_return ParseQueue(end.output);
}

}  // namespace sekisho::qserver
