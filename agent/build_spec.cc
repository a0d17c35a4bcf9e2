// SPDX-License-Identifier: Apache-2.0
#include "agent/build_spec.h"

#include <unistd.h>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "agent/errors.h"
#include "common/refusal.h"

namespace sekisho::agent {
namespace {

constexpr char kFilesPlace[] = "@FILES@";
constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";
constexpr int64_t kDefaultGraceMs = 5000;

std::string WithFiles(std::string text, const std::string& files) {
  for (size_t at = 0; (at = text.find(kFilesPlace, at)) != std::string::npos; at += files.size()) {
    text.replace(at, sizeof kFilesPlace - 1, files);
  }
  return text;
}

absl::Status CheckText(const std::string& text, const char* what) {
  return text.find('\0') == std::string::npos ? absl::OkStatus() : errors::HoldsNul(what);
}

absl::Status CheckStart(const proto::ServerMessage::Start& start) {
  for (const std::string& argument : start.argument()) {
    RETURN_IF_ERROR(CheckText(argument, "an argument"));
  }
  for (const auto& [name, value] : start.environment()) {
    if (name.empty() || name.find('=') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      return errors::BadVariable(name);
    }
    RETURN_IF_ERROR(CheckText(value, "a variable"));
  }
  for (const auto& file : start.file()) {
    if (!task::IsFileName(file.first)) {
      return errors::BadFileName(file.first);
    }
  }
  for (const std::string& word : start.wrapper()) {
    RETURN_IF_ERROR(CheckText(word, "an argument"));
  }
  RETURN_IF_ERROR(CheckText(start.directory(), "the directory"));
  RETURN_IF_ERROR(CheckText(start.stdin_path(), "stdin"));
  RETURN_IF_ERROR(CheckText(start.stdout_path(), "stdout"));
  RETURN_IF_ERROR(CheckText(start.launch_token(), "the launch token"));
  RETURN_IF_ERROR(CheckText(start.launch(), "the launch"));
  return CheckText(start.stderr_path(), "stderr");
}

std::vector<std::string> Environment(const proto::ServerMessage::Start& start,
                                     const Account& account, const NodeSettings& node,
                                     const std::string& files) {
  std::map<std::string, std::string> variables = {{"PATH", kDefaultPath},
                                                  {"HOME", account.home},
                                                  {"USER", account.name},
                                                  {"LOGNAME", account.name},
                                                  {"SHELL", account.shell}};
  for (const auto& [name, value] : start.environment()) {
    variables[name] = WithFiles(value, files);
  }
  if (!start.launch_token().empty()) {
    variables["SEKISHO_LAUNCH_SOCKET"] = node.launch_socket;
    variables["SEKISHO_LAUNCH_TOKEN"] = start.launch_token();
  }
  if (!node.pm_socket.empty()) {
    variables["PM_AGENT"] = start.task().job_id() + ":" + node.pm_socket;
  }
  if (start.has_rank()) {
    variables["PMI_FD"] = std::to_string(task::kPmiFd);
    variables["PMI_RANK"] = std::to_string(start.rank().rank());
    variables["PMI_SIZE"] = std::to_string(start.rank().ranks());
    variables.emplace("PM_JOB_FILE", "pmi");  // so nodes of PM meet, unless the job has a file for them
    variables["SEKISHO_WORLD"] = start.rank().world();
    variables["SEKISHO_LOCAL_RANKS"] = std::to_string(start.rank().local_ranks());
  }
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) {
    environment.push_back(name + "=" + value);
  }
  return environment;
}

}  // namespace

absl::StatusOr<task::Spec> BuildSpec(const proto::ServerMessage::Start& start,
                                     const Account& account, const NodeSettings& node,
                                     const std::string& directory) {
  RETURN_IF_ERROR(CheckStart(start));
  if (account.uid == 0) {
    return errors::RootAccount(account.name);
  }
  const std::string files = directory + "/" + task::kSmallFiles;
  task::Spec spec;
  spec.job_id = start.task().job_id();
  spec.task = start.task().task();
  spec.boot_id = node.boot_id;
  spec.account = account.name;
  spec.uid = account.uid;
  spec.gid = account.gid;
  spec.groups = account.groups;
  for (const std::string& argument : start.argument()) {
    spec.argument.push_back(WithFiles(argument, files));
  }
  spec.environment = Environment(start, account, node, files);
  spec.directory = start.directory().empty() ? account.home : start.directory();
  spec.umask = static_cast<int>(start.umask() & 0777);
  spec.stdin_path = start.has_input() ? "" : start.stdin_path();
  spec.stdout_path = start.stdout_path();
  spec.stderr_path = start.stderr_path();
  spec.has_input = start.has_input();
  spec.append_output = start.append_output();
  spec.check_only = start.check_only();
  spec.await_release = start.await_release();
  spec.syncs_late = true;
  spec.wrapper = {start.wrapper().begin(), start.wrapper().end()};
  spec.pmi_socket = start.has_rank() ? node.pmi_socket : "";
  spec.is_helper = start.is_helper();
  spec.launch = start.launch();
  spec.wall_limit_ms = start.wall_limit_s() * 1000;
  spec.grace_ms = start.grace_ms() > 0 ? start.grace_ms() : kDefaultGraceMs;
  spec.cpu_limit_s = start.cpu_limit_s();
  spec.memory_limit_mb = start.memory_limit_mb();
  spec.process_limit = node.process_limit;
  spec.launch_token = start.launch_token();
  spec.grouping = node.grouping;
  if (!node.cgroup_parent.empty()) {
    spec.cgroup = fmt::format("{}/{}.{}", node.cgroup_parent, spec.job_id, spec.task);
  }
  return spec;
}

absl::Status CheckPrograms(const proto::ServerMessage::Start& start) {
  for (const std::string& program : start.needed_program()) {
    RETURN_IF_ERROR(CheckText(program, "a program"));
    if (access(program.c_str(), X_OK) != 0) {
      return errors::NoLauncher(program, std::strerror(errno));
    }
  }
  return absl::OkStatus();
}

int GramCodeOf(const absl::Status& status) {
  if (GramCode(status) != 0) {
    return GramCode(status);
  }
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      return task::kInvalidUserName;
    case absl::StatusCode::kInvalidArgument:
      return task::kBadArguments;
    default:
      return task::kNoResources;
  }
}

}  // namespace sekisho::agent
