// SPDX-License-Identifier: Apache-2.0
// Exit codes of the command line, and what is said beside them: docs/operations/cli.md.  Pure.
#pragma once

#include <string>

#include "common/refusal.h"
#include "proto/job.pb.h"

namespace sekisho::client {

// 0-124: the program's own.  128+n: ended by signal n.
inline constexpr int kExitFailed = 125;     // Sekisho could not run or finish it
inline constexpr int kExitRefused = 126;    // credential, mapping, policy
inline constexpr int kExitUnknown = 127;    // the job's state is not known
inline constexpr int kExitCancelled = 130;  // by Ctrl-C
inline constexpr int kExitUsage = 64;       // command line or RSL

int ExitCodeOf(const absl::Status& error);
int ExitCodeOf(const proto::JobStatus& job);

// "sekisho: REASON (GRAM error 7, AUTHORIZATION)\n  -> REMEDY\n"
std::string ErrorText(const absl::Status& error);

// Why a job did not end well, in the same shape; "" if its own exit code says all.
std::string EndText(const proto::JobStatus& job);

}  // namespace sekisho::client
