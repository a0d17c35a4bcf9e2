// SPDX-License-Identifier: Apache-2.0
// Jobs as people and as machines read them.  Pure.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "proto/job.pb.h"

namespace sekisho::client {

// Keys: id site state state_code reason remedy exit_code signal gram_code nodes ...; exit_code and signal
// are null until the job has ended.
nlohmann::json ToJson(const proto::JobStatus& job);

// One line a job: id, state, exit, nodes, age, command; with a head line.
std::string Table(const std::vector<proto::JobStatus>& jobs, int64_t now_ms);

// All that is known of one job, a line each.
std::string Describe(const proto::JobStatus& job, int64_t now_ms);

// "a-n1 a-n2", each node once.
std::vector<std::string> Nodes(const proto::JobStatus& job);

// "3 s", "12 min", "5 h", "2 d".
std::string Age(int64_t milliseconds);

// Harmless columns, padded to their widest cell, two blanks between, no blank at a line's end.
std::string Columns(std::vector<std::vector<std::string>> rows);

}  // namespace sekisho::client
