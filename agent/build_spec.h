// SPDX-License-Identifier: Apache-2.0
// From what the queue server asks to what a supervisor runs.  Pure.
#pragma once

#include <string>

#include "agent/accounts.h"
#include "agent/task/spec.h"
#include "common/status.h"
#include "proto/nodes.pb.h"

namespace sekisho::agent {

// What this node adds to every task.
struct NodeSettings {
  std::string boot_id;
  std::string launch_socket;
  std::string pmi_socket;
  std::string pm_socket;  // where libpm asks for the job's daemon; empty: nowhere
  task::Grouping grouping = task::Grouping::kNone;
  std::string cgroup_parent;  // of the tasks' own cgroups; empty with kNone
  int64_t process_limit = 0;
};

// `directory`: the task's record directory.  InvalidArgument or PermissionDenied if the request
// could harm more than its task.
absl::StatusOr<task::Spec> BuildSpec(const proto::ServerMessage::Start& start,
                                     const Account& account, const NodeSettings& node,
                                     const std::string& directory);

// Whether what the task needs beside its executable can be executed here.
absl::Status CheckPrograms(const proto::ServerMessage::Start& start);

// The GRAM code that tells a user of such an error.
int GramCodeOf(const absl::Status& status);

}  // namespace sekisho::agent
