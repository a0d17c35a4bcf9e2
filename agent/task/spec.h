// SPDX-License-Identifier: Apache-2.0
// What an agent and a task's supervisor tell each other, through files in the task's directory and
// through queued signals.  docs/protocol/7-nodes.md, "A task on its node".
#pragma once

#include <sys/types.h>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sekisho::agent::task {

// The task's directory: `spec` is written by the agent and locked by the supervisor as long as it
// lives, `pid` says that the task runs, `exit` how it ended.  All but `files` are readable by root
// only.
inline constexpr char kSpecFile[] = "spec";
inline constexpr char kPidFile[] = "pid";
inline constexpr char kExitFile[] = "exit";
inline constexpr char kStdoutFile[] = "stdout";
inline constexpr char kStderrFile[] = "stderr";
inline constexpr char kInputFile[] = "input";         // appended to by the agent
inline constexpr char kInputTaken[] = "input_taken";  // bytes of it that went into the task's pipe
inline constexpr char kSmallFiles[] = "files";        // the account's
inline constexpr char kReadyFile[] = "ready";          // the task stands before its exec

// What the agent tells a supervisor: one queued signal, so that commands arrive in order, whose
// value says what to do.
enum class Command {
  kKill = 1,  // send `signal`; SIGKILL to all that is left after `grace_ms`
  kLimit,     // the same with SIGTERM, because of too much output
  kStop,      // let nothing of the task run
  kResume,
  kInput,     // `input` has grown
  kInputEnd,  // ... and is complete
  kRelease,   // a waiting task may run its program
};
struct Order {
  Command command = Command::kKill;
  int signal = 0;
  int64_t grace_ms = 0;  // at most 2,097,151

  bool operator==(const Order&) const = default;
};
inline int OrderSignal() { return SIGRTMIN + 1; }
int PackOrder(const Order& order);
Order UnpackOrder(int value);

// GRAM's numbers for what can go wrong here.
enum GramCode {
  kNoError = 0,
  kNoResources = 3,
  kBadDirectory = 4,
  kExecutableNotFound = 5,
  kStdinNotFound = 11,
  kExecutionFailed = 17,
  kBadArguments = 46,
  kForking = 71,
  kExecutablePermissions = 72,
  kOpeningStdout = 73,
  kOpeningStderr = 74,
  kUndefinedExecutable = 81,
  kNoMpirun = 98,
  kInvalidUserName = 167,
};

enum class Grouping { kNone, kV1, kV2 };  // how a task's processes are kept together
std::string_view Name(Grouping grouping);
std::optional<Grouping> ParseGrouping(std::string_view name);

struct Spec {
  std::string job_id;
  int task = 0;
  std::string boot_id;  // a task of an earlier boot has ended
  std::string account;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  std::vector<std::string> argument;
  std::vector<std::string> environment;  // NAME=VALUE
  std::string directory;
  int umask = 022;
  std::string stdin_path;
  std::string stdout_path;
  std::string stderr_path;
  bool has_input = false;
  bool append_output = false;
  bool check_only = false;
  bool await_release = false;        // wait for kRelease before the exec
  bool syncs_late = false;           // its end, kSyncAfterMs later: else before anybody sees it
  std::vector<std::string> wrapper;  // words before the program, once that was found
  std::string pmi_socket;            // of the agent, for an MPI rank: it says as kPmiFd what goes there
  bool is_helper = false;
  std::string launch;  // ... of this launch, as the queue server names it
  int64_t wall_limit_ms = 0;
  int64_t grace_ms = 5000;
  int64_t cpu_limit_s = 0;
  int64_t memory_limit_mb = 0;
  int64_t process_limit = 0;
  std::string launch_token;
  Grouping grouping = Grouping::kNone;
  std::string cgroup;  // the task's own, absent yet

  bool operator==(const Spec&) const = default;
};

// So long the supervisor waits to be ended by the agent, before it syncs what the queue server has not taken by then.
inline constexpr int kSyncAfterMs = 1000;

// Where an MPI program finds its process manager (PMI_FD).
inline constexpr int kPmiFd = 100;

struct Running {
  pid_t supervisor = 0;
  pid_t main = 0;
  int64_t time_ms = 0;

  bool operator==(const Running&) const = default;
};

struct Ended {
  int code = 0;
  int signal = 0;
  int gram_code = 0;
  std::string reason;
  int64_t time_ms = 0;
  int64_t cpu_ms = 0;
  int64_t max_rss_kb = 0;

  bool operator==(const Ended&) const = default;
};

std::string EncodeSpec(const Spec& spec);
std::string EncodeRunning(const Running& running);
std::string EncodeEnded(const Ended& ended);

// Nothing if a field is missing or out of range.
std::optional<Spec> DecodeSpec(std::string_view bytes);
std::optional<Running> DecodeRunning(std::string_view bytes);
std::optional<Ended> DecodeEnded(std::string_view bytes);

// Identifiers that may become part of a path: [a-z0-9]{1,32}.
bool IsJobId(std::string_view text);
// Names of small files: [A-Za-z0-9._-]{1,64}, not beginning with a dot.
bool IsFileName(std::string_view text);

}  // namespace sekisho::agent::task
