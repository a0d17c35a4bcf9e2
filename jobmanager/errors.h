// SPDX-License-Identifier: Apache-2.0
// Every refusal of the jobmanager that a user can meet: docs/protocol/4-submission.md, "Errors".  Each
// carries GRAM's error number and a remedy.
#pragma once

#include <string>

#include <fmt/format.h>

#include "common/refusal.h"

namespace sekisho::jobmanager::errors {

// GRAM's numbers, as far as they are not the RSL's own.
enum Gram {
  kNone = 0,
  kNoResources = 3,
  kAuthorization = 7,
  kUserCancelled = 8,
  kProtocolFailed = 10,
  kExecutionFailed = 17,
  kInvalidQueue = 37,
  kUnknownSignal = 108,
  kJobContactNotFound = 156,
  kInvalidUserName = 167,
};

inline absl::Status NotFromTheGatekeeper() {
  return Refuse(absl::StatusCode::kUnauthenticated, kAuthorization,
                "a jobmanager serves calls that its gatekeeper has authenticated, and no others",
                "call the site's gatekeeper");
}

inline absl::Status Malformed(const std::string& what) {
  return Refuse(absl::StatusCode::kInvalidArgument, kProtocolFailed, "malformed request: " + what,
                "this is a fault of the client program; is it of a fitting version?");
}

inline absl::Status LeadersMayNot() {
  return Refuse(absl::StatusCode::kPermissionDenied, kAuthorization,
                "the leader of a multi-site program may make no call but for its parts",
                "make the call as its user");
}

inline absl::Status WorldTaken(const std::string& name) {
  return Refuse(absl::StatusCode::kAlreadyExists, kProtocolFailed, fmt::format("{} is led here already", name),
                "begin it under a new name");
}

// ---- edits of a world

inline absl::Status NoSuchWorld(const std::string& name) {
  return Refuse(absl::StatusCode::kNotFound, kJobContactNotFound,
                fmt::format("no world '{}' of yours is led here", name.substr(0, 64)),
                "name it as 'sekisho mpirun --hold' printed it; ten minutes after its end it is forgotten");
}

inline absl::Status WorldIsOver(const std::string& name, const std::string& why) {
  return Refuse(absl::StatusCode::kFailedPrecondition, kNone, fmt::format("{} is over: {}", name, why),
                "begin it again");
}

inline absl::Status WorldIsReleased(const std::string& name) {
  return Refuse(absl::StatusCode::kFailedPrecondition, kNone,
                fmt::format("the ranks of {} have been released: its parts are frozen", name),
                "to end it: 'sekisho coalloc cancel'");
}

inline absl::Status ReleaseIsAskedFor(const std::string& name) {
  return Refuse(absl::StatusCode::kFailedPrecondition, kNone,
                fmt::format("the release of {} has been asked for: its parts are frozen, and run once all stand ready", name),
                "'sekisho coalloc show' says which does not; to end it: 'sekisho coalloc cancel'");
}

inline absl::Status WorldIsNotHeld(const std::string& name) {
  return Refuse(absl::StatusCode::kFailedPrecondition, kNone,
                fmt::format("{} was not begun with --hold: its parts cannot be edited", name),
                "begin it again: 'sekisho mpirun --hold'");
}

inline absl::Status NoSuchPart(const std::string& name, int part) {
  return Refuse(absl::StatusCode::kNotFound, kNone, fmt::format("{} has no part {}", name, part),
                "'sekisho coalloc show' prints its parts");
}

inline absl::Status LastPart(const std::string& name) {
  return Refuse(absl::StatusCode::kFailedPrecondition, kNone,
                fmt::format("it is the last part of {}", name), "to end the world: 'sekisho coalloc cancel'");
}

inline absl::Status EditedMeanwhile(int part, int expected) {
  return Refuse(absl::StatusCode::kAborted, kNone,
                fmt::format("the charter is for part {}, and the next is {}: somebody else has edited the world meanwhile",
                            part, expected),
                "say it again");
}

inline absl::Status TooManyParts(int most) {
  return Refuse(absl::StatusCode::kResourceExhausted, kNone, fmt::format("a world has at most {} parts", most),
                "give the other parts more ranks each");
}

inline absl::Status PartIsNotReady(const std::string& part, const std::string& why) {
  return Refuse(absl::StatusCode::kFailedPrecondition, kNone,
                fmt::format("{} does not stand ready: {}", part, why),
                "without --if-ready it is released as soon as it does");
}

inline absl::Status InputTakenOver(const std::string& id) {
  return Refuse(absl::StatusCode::kAborted, 0,
                fmt::format("another call feeds the standard input of job {} now", id),
                "use that one, or end it and attach again");
}

inline absl::Status Mismatch(const std::string& what, const std::string& asked, const std::string& seen) {
  return Refuse(absl::StatusCode::kPermissionDenied, kAuthorization,
                fmt::format("the signed request is meant for {} '{}', but came to '{}'", what, asked, seen),
                "submit it again, to the site it is meant for");
}

inline absl::Status OtherRequest(const std::string& request_id, const std::string& job) {
  return Refuse(absl::StatusCode::kAlreadyExists, kProtocolFailed,
                fmt::format("request id '{}' was used before, for job {} with another RSL", request_id, job),
                "use a new request id for a new job");
}

inline absl::Status OtherUser(const std::string& asked, const std::string& account) {
  return Refuse(absl::StatusCode::kPermissionDenied, kInvalidUserName,
                fmt::format("username: the RSL asks for account '{}', the gatekeeper mapped you to '{}'",
                            asked, account),
                fmt::format("leave username out, or ask for the account: '--account {}'", asked));
}

inline absl::Status OtherQueue(const std::string& rsl, const std::string& contact) {
  return Refuse(absl::StatusCode::kInvalidArgument, kInvalidQueue,
                fmt::format("queue: the RSL says '{}', the contact says '{}'", rsl, contact),
                "name the queue once");
}

inline absl::Status MultiRequest() {
  return Refuse(absl::StatusCode::kInvalidArgument, 0,
                "this is a multi-request (+) of several parts, and a site's jobmanager takes one",
                "submit each part to its own site");
}

// The same words for a job that never was and for another subject's.
inline absl::Status NoSuchJob(const std::string& id) {
  return Refuse(absl::StatusCode::kNotFound, kJobContactNotFound,
                fmt::format("there is no job '{}' here", id.substr(0, 64)),
                "'sekisho list' shows your jobs at a site");
}

inline absl::Status NotUnderstood(int number) {
  return Refuse(absl::StatusCode::kInvalidArgument, kUnknownSignal,
                fmt::format("there is no signal {} that a jobmanager understands", number),
                "use 1 (cancel), 2 (suspend) or 3 (resume)");
}

inline absl::Status TooMuchAtOnce(int count) {
  return Refuse(absl::StatusCode::kResourceExhausted, kNone,
                fmt::format("the answer about {} jobs is too long for one message", count),
                "ask for fewer jobs at a time");
}

inline absl::Status AlreadyEnded(const std::string& id, const std::string& state) {
  return Refuse(absl::StatusCode::kFailedPrecondition, kNone,
                fmt::format("job {} has ended already: {}", id, state), "there is nothing left to do");
}

// ---- hops beyond this process

inline absl::Status SiteNotReached(const std::string& site, const std::string& why) {
  return Refuse(absl::StatusCode::kUnavailable, kNoResources, why,
                fmt::format("see what is wrong there: sekisho doctor {}", site));
}

inline absl::Status PinholeClosed(const std::string& address, const std::string& site) {
  return Refuse(absl::StatusCode::kUnavailable, kNoResources,
                fmt::format("no answer from the queue server of {} at {}: the firewall's pinhole is "
                            "closed, or that host is down",
                            site, address),
                "try again later, or tell the site's administrator");
}

inline absl::Status QueueServerDown(const std::string& address, const std::string& site,
                                    const std::string& why) {
  return Refuse(absl::StatusCode::kUnavailable, kNoResources,
                fmt::format("the queue server of {} does not run: {} at {}", site, why, address),
                "try again later, or tell the site's administrator");
}

inline absl::Status QueueServerStranger(const std::string& address, const std::string& site,
                                        const std::string& why) {
  return Refuse(absl::StatusCode::kUnavailable, kAuthorization,
                fmt::format("what answers as queue server of {} at {} is not trusted: {}", site, address, why),
                "tell the site's administrator");
}

inline absl::Status JobmanagerRefused(const std::string& address, const std::string& site, const std::string& why) {
  return Refuse(absl::StatusCode::kUnavailable, kAuthorization,
                fmt::format("the queue server of {} at {} refuses this site's jobmanager: {}", site, address, why),
                "tell the site's administrator");
}

// Of the above, when it ends a submit.
inline absl::Status NothingSubmitted(const absl::Status& why) {
  return Refuse(why.code(), GramCode(why), Message(why), "nothing was submitted; " + Remedy(why));
}

// Neither here nor, as far as anybody knows, inside.
inline absl::Status NotStored(const std::string& why) {
  return Refuse(absl::StatusCode::kUnavailable, kNoResources, "the site's jobmanager cannot store the job: " + why,
                "submit it again, with the same request id, or tell the site's administrator: a disk may be full");
}

inline absl::Status CancelledInTime() {
  return Refuse(absl::StatusCode::kFailedPrecondition, kUserCancelled,
                "the job was cancelled by its user before it was submitted",
                "submit it again, with a new request id");
}

inline absl::Status QueueServerLost(const std::string& site) {
  return Refuse(absl::StatusCode::kUnavailable, kNoResources,
                fmt::format("the connection to the queue server of {} broke", site),
                "the job is not affected; ask again");
}

}  // namespace sekisho::jobmanager::errors
