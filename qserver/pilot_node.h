// SPDX-License-Identifier: Apache-2.0
// A pilot is a node of its own, HOST.JOB, for users and accounts it is HOST.
#pragma once

#include <string>

namespace sekisho::qserver {

inline std::string HostOf(const std::string& node, const std::string& job_id) {
  const std::string name = node.substr(0, node.find_last_of('.'));
  return node.size() == name.size() + 1 + job_id.size() && node.ends_with(job_id) ? name : node;
}

}  // namespace sekisho::qserver
