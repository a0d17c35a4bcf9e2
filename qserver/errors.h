// SPDX-License-Identifier: Apache-2.0
// Every error of the queue server that a user or administrator can meet: code, GRAM's number,
// reason and remedy.
#pragma once

#include <cstring>
#include <string>

#include <fmt/format.h>

#include "common/refusal.h"
#include "common/status.h"
#include "rsl/error.h"

namespace sekisho::qserver::errors {

using absl::StatusCode;

// ---- Who may speak

inline absl::Status NotAJobmanager(const std::string& subject) {
  return Refuse(StatusCode::kPermissionDenied, 7,
                fmt::format("{} is not a jobmanager of this site", subject),
                "add its subject to \"jobmanager\" in the queue server's configuration");
}

inline absl::Status NotADirectory(const std::string& subject) {
  return Refuse(StatusCode::kPermissionDenied, 7,
                fmt::format("{} may not watch this site", subject),
                "add its subject to \"directory\" in the queue server's configuration");
}

inline absl::Status OtherAccount(const std::string& own, const std::string& account) {
  return Refuse(StatusCode::kPermissionDenied, 7,
                fmt::format("the jobmanager of {} has nothing to do with jobs of {}", own, account),
                "ask the jobmanager of the job's own account");
}

inline absl::Status NotANode(const std::string& subject, const std::string& node) {
  return Refuse(
      StatusCode::kPermissionDenied, 7, fmt::format("{} may not speak for node {}", subject, node),
      "give the node a host certificate of its name, or add the subject to \"node\" in the queue "
      "server's configuration");
}

inline absl::Status TooManyConnections() {
  return Refuse(StatusCode::kResourceExhausted, 0, "all the connections that this address may have here are in use",
                "see what holds them, on the host that calls");
}

inline absl::Status NamelessNode(const std::string& subject) {
  return Refuse(StatusCode::kPermissionDenied, 7,
                fmt::format("{} does not say for which node it speaks", subject),
                "run the sekisho-agent of this version on the nodes");
}

inline absl::Status NodesNotKnownYet() {
  return Refuse(StatusCode::kUnavailable, 0, "the allocator has not said yet which nodes the site has",
                "start sekisho-allocator on the queue server's host; the agent comes again by itself");
}

inline absl::Status NotInTheInventory(const std::string& node) {
  return Refuse(StatusCode::kPermissionDenied, 7,
                fmt::format("node {} is not in the site's inventory", node),
                "add it to the allocator's inventory, or correct \"node\" in the agent's configuration");
}

// ---- Signed requests

inline absl::Status BadRequest(const std::string& why) {
  return Refuse(StatusCode::kInvalidArgument, 10,
                fmt::format("the request cannot be read: {}", why), "use a client of this version");
}

inline absl::Status BadCharter(const std::string& why) {
  return Refuse(StatusCode::kInvalidArgument, 10,
                fmt::format("the charter cannot be served: {}", why), "use a client of this version");
}

inline absl::Status NoRelayHere() {
  return Refuse(StatusCode::kFailedPrecondition, 3, "this site has no relay for MPI ranks",
                "ask its administrator to set \"relay\" in the queue server's configuration");
}

inline absl::Status OtherRelay(const std::string& asked, const std::string& own) {
  return Refuse(StatusCode::kFailedPrecondition, 3,
                fmt::format("this site's nodes reach only its own relay {}, not {}", own, asked),
                "let the program meet there, or run it at sites of which one at most is so closed");
}

inline absl::Status OtherSpeaker(const std::string& site, const std::string& named, const std::string& own) {
  return Refuse(StatusCode::kFailedPrecondition, 3,
                fmt::format("the queue server of {} is {}, its user's tools take {} for it", site, own, named),
                fmt::format(R"(say "queue_server": "{}" of {} in sites.json, if its administrator confirms that)", own, site));
}

inline absl::Status NotAPart(const std::string& job_id) {
  return Refuse(StatusCode::kFailedPrecondition, 0,
                fmt::format("job {} is no part of a multi-site program", job_id),
                "use `sekisho cancel` and `sekisho signal`, which are for single jobs");
}

inline absl::Status BadRelease(const std::string& job_id, int first_rank, int ranks) {
  return Refuse(StatusCode::kInvalidArgument, 0,
                fmt::format("the leader of job {} numbers its ranks from {} on, of {}", job_id, first_rank, ranks),
                "tell the administrator of the leader's site");
}

inline absl::Status NotTheLeader(const std::string& job_id) {
  return Refuse(StatusCode::kPermissionDenied, 7,
                fmt::format("the order for job {} is not its leader's", job_id),
                "let its own leader give it, or cancel the job as its user");
}

inline absl::Status NotReady(const std::string& job_id) {
  return Refuse(StatusCode::kFailedPrecondition, 0,
                fmt::format("job {} cannot be released: not all of its ranks stand ready", job_id),
                "release it once they do: `sekisho coalloc show` says which part does not");
}

inline absl::Status WrongSite(const std::string& wanted, const std::string& here) {
  return Refuse(StatusCode::kPermissionDenied, 7,
                fmt::format("the request was signed for site {}, this is {}", wanted, here),
                "submit to the site that is meant");
}

inline absl::Status WrongGatekeeper(const std::string& named) {
  return Refuse(
      StatusCode::kPermissionDenied, 7,
      fmt::format("the request was signed for gatekeeper {}, which is not this site's", named),
      "check the site's contact; its administrator lists gatekeepers in the queue server's "
      "configuration");
}

inline absl::Status MappingsDiffer(const std::string& subject, const std::string& outside,
                                   const std::string& inside) {
  return Refuse(
      StatusCode::kPermissionDenied, 7,
      fmt::format("{} is account {} outside the firewall but {} inside", subject, outside, inside),
      "ask the site's administrator to make both grid-mapfiles agree");
}

inline absl::Status NotMapped(const std::string& subject, const std::string& why) {
  return Refuse(StatusCode::kPermissionDenied, 7,
                fmt::format("{} has no account inside the site: {}", subject, why),
                "ask the site's administrator to add it to the inside's grid-mapfile");
}

inline absl::Status NoSuchAccount(const std::string& account) {
  return Refuse(StatusCode::kFailedPrecondition, 7,
                fmt::format("account {} does not exist inside the site", account),
                "ask the site's administrator");
}

inline absl::Status CannotLookUp(const std::string& account, int error) {
  return Refuse(StatusCode::kUnavailable, 0,
                fmt::format("cannot look up account {} inside the site: {}", account, std::strerror(error)),
                "try again; if it stays so, tell the site's administrator");
}

inline absl::Status TooMuchToSend(int tasks, size_t bytes, size_t most) {
  return Refuse(StatusCode::kInvalidArgument, 17,
                fmt::format("{} tasks with {} bytes of arguments and environment each are more than the {} MiB "
                            "that a job's tasks may have together",
                            tasks, bytes, most >> 20),
                "put the data into a file that the tasks read");
}

inline absl::Status NoRoot() {
  return Refuse(StatusCode::kPermissionDenied, 7, "jobs never run as root",
                "map the subject to a user's account");
}

// ---- What is asked for

inline absl::Status BadRsl(const rsl::Error& error) {
  return Refuse(StatusCode::kInvalidArgument, error.gram_code, error.Reason(), error.remedy);
}

inline absl::Status RslTooLarge(size_t bytes, size_t most) {
  return Refuse(StatusCode::kInvalidArgument, 10,
                fmt::format("the job's description has {} bytes, this site takes at most {}", bytes, most),
                "put the data into a file that the job reads, or ask the site to raise rsl_limit_kb");
}

inline absl::Status TooManyConditions(size_t values, size_t most, size_t bytes_most) {
  return Refuse(StatusCode::kInvalidArgument, 17,
                fmt::format("the conditions on nodes have {} values; at most {}, of {} bytes together, can be "
                            "compared",
                            values, most, bytes_most),
                "ask for what the nodes have in common: tags, memory, arch");
}

inline absl::Status TooManyJobs(int most) {
  return Refuse(StatusCode::kResourceExhausted, 17,
                fmt::format("{} jobs of yours wait or run here already, and that is the limit", most),
                "wait for some to end, let one job run many tasks, or ask the site to raise jobs_per_subject");
}

inline absl::Status TooManyBytes(uint64_t most) {
  return Refuse(StatusCode::kResourceExhausted, 17,
                fmt::format("the descriptions of your jobs, also of the ended ones that are kept, take {} MiB "
                            "here, and that is the limit",
                            most >> 20),
                "put data into files that the jobs read, wait until ended jobs are forgotten, or ask the "
                "site to raise kept_mb_per_subject");
}

inline absl::Status MultiRequest() {
  return Refuse(StatusCode::kInvalidArgument, 27,
                "a request of several parts (+) cannot be run by one site yet",
                "submit each part by itself");
}

inline absl::Status WrongUserName(const std::string& asked, const std::string& account) {
  return Refuse(StatusCode::kPermissionDenied, 167,
                fmt::format("username={}, but the job would run as {}", asked, account),
                "leave username out, or use a credential that is mapped to that account");
}

inline absl::Status UnknownProject(const std::string& project, const std::string& known) {
  return Refuse(StatusCode::kInvalidArgument, 38,
                fmt::format("project={} is not known here; expected {}", project, known),
                "name one of these, or ask the site to add it to \"project\"");
}

inline absl::Status WallTimeTooLong(int64_t asked_s, int64_t max_s) {
  return Refuse(StatusCode::kInvalidArgument, 102,
                fmt::format("asks for {} minutes of wall time, this site gives at most {} seconds",
                            asked_s / 60, max_s),
                "ask for less");
}

inline absl::Status Never(const std::string& reason, bool is_queue) {
  return Refuse(StatusCode::kResourceExhausted, is_queue ? 37 : 17, "can never run here: " + reason,
                "`sekisho sites` shows what the site has");
}

// ---- Batch systems: docs/protocol/13-slurm.md

inline absl::Status NoEngine(const std::string& service) {
  return Refuse(StatusCode::kNotFound, 93, fmt::format("this site runs no jobs by {}", service),
                "use service jobmanager; `sekisho sites` shows what the site has");
}

inline absl::Status NoEngineConditions(const std::string& attribute) {
  return Refuse(StatusCode::kInvalidArgument, 17,
                fmt::format("{}: conditions on nodes are not understood by Slurm", attribute),
                "name a queue (a partition) that has such nodes, or use service jobmanager");
}

inline absl::Status BadEngineName(const char* attribute, const std::string& seen, int gram_code) {
  return Refuse(StatusCode::kInvalidArgument, gram_code,
                fmt::format("{}: expected at most 64 letters, digits and ._-, saw \"{}\"", attribute,
                            seen.substr(0, 80)),
                "leave it out, or name one that the site's Slurm has");
}

inline absl::Status EngineRefuses(const std::string& engine, const std::string& words) {
  return Refuse(StatusCode::kFailedPrecondition, 17, fmt::format("{} refuses it: {}", engine, words),
                "ask for what the site's partitions have; `sinfo` there shows them");
}

inline absl::Status NoEnginePriority(const std::string& job_id) {
  return Refuse(StatusCode::kFailedPrecondition, 108,
                fmt::format("job {} waits in Slurm, which gives it its priority", job_id),
                "use `scontrol update` at the site");
}

inline absl::Status BadPilot(const std::string& why) {
  return Refuse(StatusCode::kPermissionDenied, 7, fmt::format("the pilot is refused: {}", why),
                "nothing if its job has ended; else see the queue server's log and docs/operations/slurm.md");
}

inline absl::Status PilotTooEarly(const std::string& job_id) {
  return Refuse(StatusCode::kUnavailable, 0,
                fmt::format("job {} is still being handed to the batch system", job_id), "come again");
}

// ---- Jobs

inline absl::Status CancelledBefore(const std::string& job_id) {
  return Refuse(StatusCode::kFailedPrecondition, 8,
                fmt::format("job {} was cancelled by its user before it came here", job_id),
                "submit it again, with a new request id");
}

inline absl::Status OtherRequest(const std::string& job_id) {
  return Refuse(StatusCode::kAlreadyExists, 10,
                fmt::format("the request id of job {} was used before, for another account or other RSL",
                            job_id),
                "use a new request id");
}

// The same words for a job that never was and for another subject's, and the jobmanager's words.
inline absl::Status NoSuchJob(const std::string& job_id) {
  return Refuse(StatusCode::kNotFound, 156, fmt::format("there is no job '{}' here", job_id.substr(0, 64)),
                "'sekisho list' shows your jobs at a site");
}

inline absl::Status CannotSignal(const std::string& job_id, const char* what,
                                 const std::string& state, const char* wanted) {
  return Refuse(StatusCode::kFailedPrecondition, 107,
                fmt::format("cannot {} job {}: it is {}, expected {}", what, job_id, state, wanted),
                "`sekisho status` shows where it stands");
}

inline absl::Status SignedBeforeRestart() {
  return Refuse(StatusCode::kUnavailable, 0,
                "the queue server was restarted after this was signed, and cannot tell whether it was done",
                "look at the job, and send it again");
}

inline absl::Status CommandOvertaken(const std::string& job_id) {
  return Refuse(StatusCode::kFailedPrecondition, 107,
                fmt::format("a command for job {} that was signed later has been carried out", job_id),
                "look at the job, and send it again");
}

inline absl::Status NotTwoPhase(const std::string& job_id) {
  return Refuse(StatusCode::kFailedPrecondition, 107,
                fmt::format("job {} does not wait for a commit", job_id), "only jobs with two_phase in their RSL do");
}

inline absl::Status BadExtension(const std::string& seen) {
  return Refuse(StatusCode::kInvalidArgument, 107,
                fmt::format("commit_extend: expected 1 to 86400 seconds, saw \"{}\"", seen),
                "for more, say it again before that time is over");
}

inline absl::Status UnknownSignal(int number) {
  return Refuse(StatusCode::kInvalidArgument, 108,
                fmt::format("signal {} is not supported", number),
                "expected 1 (cancel), 2 (suspend), 3 (resume), 4 (priority), 5 (commit_request), 6 (commit_extend), "
                "7 (stdio_update) or 10 (commit_end)");
}

inline absl::Status BadPriority(const std::string& seen) {
  return Refuse(StatusCode::kInvalidArgument, 107,
                fmt::format("priority: expected a whole number from -100 to 0, saw \"{}\"", seen),
                "users may only lower the priority of their jobs");
}

inline absl::Status NoInput(const std::string& job_id) {
  return Refuse(StatusCode::kFailedPrecondition, 0,
                fmt::format("job {} takes no standard input", job_id),
                "begin one with `sekisho run` and without stdin in its RSL");
}

inline absl::Status InputTooLarge(size_t most) {
  return Refuse(StatusCode::kInvalidArgument, 10,
                fmt::format("a piece of standard input has at most {} bytes", most),
                "this is a fault of the client program");
}

inline absl::Status InputTakenOver(const std::string& job_id) {
  return Refuse(StatusCode::kAborted, 0,
                fmt::format("another call feeds the standard input of job {} now", job_id),
                "use that one, or end it and attach again");
}

inline absl::Status InputNotHeard(const std::string& job_id) {
  return Refuse(StatusCode::kUnavailable, 0,
                fmt::format("the node of job {} was lost before it had all of the input", job_id),
                "send again what it had not taken, and the end");
}

inline absl::Status InputGap(uint64_t expected, uint64_t seen) {
  return Refuse(StatusCode::kOutOfRange, 0,
                fmt::format("standard input: expected offset {} or less, saw {}", expected, seen),
                "send it again from there");
}

inline absl::Status NoNodeToCheck(const std::string& why) {
  return Refuse(StatusCode::kUnavailable, 17, "no node that could run the job is up to check it on" + why,
                "try again later");
}

inline absl::Status CheckUnanswered(const std::string& node) {
  return Refuse(StatusCode::kUnavailable, 17, fmt::format("node {} did not answer in 10 s", node), "try again");
}

inline absl::Status CheckFailed(int gram_code, const std::string& reason) {
  return Refuse(StatusCode::kInvalidArgument, gram_code, reason,
                "correct the job's description, or put what it names where the site's nodes see it");
}

inline absl::Status StoreFailed(const std::string& why) {
  return Refuse(StatusCode::kUnavailable, 3, fmt::format("the job could not be stored: {}", why),
                "ask the site's administrator to look at the queue server's disk");
}

}  // namespace sekisho::qserver::errors
