// SPDX-License-Identifier: Apache-2.0
// What leaves a job: its output while it runs, and what goes out when its tasks have ended.
// docs/protocol/17-staging.md, "Stage out" and "Output to destinations".  Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rsl/job_description.h"

namespace sekisho::rsl {

inline constexpr int kNoStream = -1;
inline constexpr int kStreams = 2;  // 0: standard output, 1: standard error

// Goes to a place when the job's tasks have ended.
struct Outgoing {
  std::string attribute;   // file_stage_out, stdout or stderr
  int stream = kNoStream;  // then all that the tasks have written to it; else the file `from`
  std::string from;
  std::string to;
  int number = 0;              // by which events and clients name it
  std::uint64_t position = 0;  // of a stream: there is so much of it at `to` already
  bool operator==(const Outgoing&) const = default;
};

// What its user has said of a stream since: docs/protocol/17-staging.md, "Redirection".
struct Redirection {
  std::vector<std::string> to;
  std::uint64_t position = 0;
  int number = 0;  // of the first that goes out, above all that were ever given
};
using Redirections = std::array<std::optional<Redirection>, kStreams>;

// file_stage_out's, then stdout's, then stderr's, numbered so; what a redirection puts in their place has its own numbers.
std::vector<Outgoing> OutgoingOf(const JobDescription& job, const Redirections& redirections = {});
int NextNumber(const JobDescription& job, const Redirections& redirections);

// A client fetches it; what its request does not mark so, no site can have it write.
bool IsForClient(const Outgoing& item);

// The file at the site that the tasks write the stream to themselves; empty: the site keeps what comes.
std::string WrittenByTasks(const std::vector<Destination>& stream);

// Of a stream's destinations: what goes there goes when the tasks have ended.
bool IsSent(const std::string& destination);
// And it gets the stream whole, whatever there is of it: written aside, and renamed.
bool IsFile(const std::string& destination);

// As which of its own descriptors, 1 and 2, a client that follows the job shows each stream.
std::array<std::set<int>, kStreams> ShownAs(const JobDescription& job);

}  // namespace sekisho::rsl
