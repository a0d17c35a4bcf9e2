// SPDX-License-Identifier: Apache-2.0
// Questions to this host's sekisho-pmd, as the verbs of sekisho pm ask them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "transport/pm/job_file.h"
#include "transport/pm/unix_message.h"

namespace sekisho::client {

inline constexpr int kPmFailed = 125;
inline constexpr int kPmUsage = 64;

// Says so on standard error; an exit code.
int PmFail(const std::string& what, int error);
// The same of what the daemon answered to a question about a job: what it means, and what to do.
int PmRefused(const std::string& job, pm::Ask ask, int error);

// 0 or errno.  `socket` may be empty: the usual one.  `descriptor`, if given, gets the answer's
// first descriptor, or -1.  No daemon there: ECONNREFUSED.
int AskPmDaemon(const std::string& socket, const pm::AskMessage& ask, std::span<const int> fds,
                std::string& text, int* descriptor = nullptr);
// The same, until the answer is whole.
int AskPmDaemonForAll(const std::string& socket, pm::AskMessage ask, std::span<const int> fds,
                      std::string& text);

// The nodes of a context that this host's daemon has, of the job with this key file: another one
// may have the same number.  Only `node` unless that is negative.
std::vector<int> PmNodesHere(const std::string& socket, unsigned context, int node, int key,
                             int& error);

// False: said so on standard error.
bool ReadPmJob(const std::string& path, pm::JobFile& job);

}  // namespace sekisho::client
