// SPDX-License-Identifier: Apache-2.0
// Errors about a job's files that its user can meet: docs/protocol/17-staging.md.
#pragma once

#include <string>

#include <fmt/format.h>

#include "common/log.h"
#include "common/refusal.h"
#include "qserver/stage_plan.h"

namespace sekisho::qserver::errors {

inline constexpr int kStageInFailed = 135;
inline constexpr int kStageOutFailed = 155;

inline absl::Status BadStaging(int gram_code, const std::string& attribute, const std::string& why,
                               const std::string& remedy) {
  return Refuse(absl::StatusCode::kInvalidArgument, gram_code, attribute + ": " + why, remedy);
}

inline absl::Status UnknownScheme(int gram_code, const std::string& attribute, const std::string& source) {
  return BadStaging(gram_code, attribute,
                    fmt::format("expected a file of the client, of the site or of a web server, saw \"{}\"",
                                Printable(source)),
                    "name it client://PATH (or a path), file://PATH, or http[s]://HOST/PATH");
}

inline absl::Status NotSent(int gram_code, const std::string& attribute, const std::string& source) {
  return BadStaging(gram_code, attribute,
                    fmt::format("the signed request does not say what \"{}\" is: its size and SHA-256 are missing",
                                Printable(source)),
                    "submit with this version of sekisho, on a machine that has the file");
}

inline absl::Status TooManyFiles(size_t most) {
  return BadStaging(141, "file_stage_in", fmt::format("expected at most {} files", most), "pack them into one");
}

inline absl::Status FileTooLarge(const std::string& source, uint64_t size, uint64_t most) {
  return BadStaging(141, "file_stage_in",
                    fmt::format("\"{}\" has {} bytes, the site takes {}", Printable(source), size, most),
                    "bring it there by another way, and name its path");
}

inline absl::Status NotStaging(const std::string& job_id, const std::string& state) {
  return Refuse(absl::StatusCode::kFailedPrecondition, 0,
                fmt::format("job {} is {}: it waits for no file", job_id, state),
                "`sekisho put` brings files to a job that runs; a new job brings its own");
}

inline absl::Status OtherContent(const std::string& source, const std::string& what) {
  return Refuse(absl::StatusCode::kDataLoss, kStageInFailed,
                fmt::format("what came of {} is not what its user signed: {}", Printable(source), what),
                "see whether the file was changed; else somebody on the way changes what is sent");
}

inline absl::Status BadPiece(const std::string& why) {
  return Refuse(absl::StatusCode::kInvalidArgument, kStageInFailed,
                fmt::format("a piece of a file that was not asked for: {}", why), "use a client of this version");
}

// Not FailedPrecondition, which says to the client that the job waits for no file.
inline absl::Status CannotTake(const std::string& source, const absl::Status& why) {
  return Refuse(absl::StatusCode::kResourceExhausted, kStageInFailed,
                fmt::format("{} cannot be kept at the site: {}", Printable(source), Message(why)),
                "make room there, or see the account's quota and its rights, and send it again");
}

inline absl::Status CannotStage(const absl::Status& why) {
  return Refuse(why.code(), kStageInFailed, fmt::format("its files cannot be put in place: {}", Message(why)),
                "see the path, the account's quota and its rights there");
}

inline absl::Status CannotStageOut(const StageOut& item, const absl::Status& why) {
  const bool is_stream = item.stream != rsl::kNoStream;
  return Refuse(why.code(), kStageOutFailed,
                fmt::format("{}: {}: {}", item.attribute, Printable(is_stream ? item.destination : item.source), Message(why)),
                is_stream ? "the site has kept it: sekisho output JOB" : "see what the job has left: sekisho ls JOB");
}

inline absl::Status FilesDidNotCome(int64_t hours) {
  return Refuse(absl::StatusCode::kDeadlineExceeded, kStageInFailed,
                fmt::format("its files did not come within {} h", hours),
                "submit it again, and stay until they are sent; a link that was lost: sekisho upload JOB");
}

inline absl::Status NotInTheJob(const std::string& path) {
  return Refuse(absl::StatusCode::kInvalidArgument, 0,
                fmt::format("expected a path in the job's directory, saw \"{}\"", Printable(path)),
                "name it relative to the job's directory: sekisho ls JOB");
}

inline absl::Status CannotShow(const absl::Status& why) {
  return Refuse(why.code(), 0, Message(why), "see what there is: sekisho ls JOB");
}

inline absl::Status WrittenBefore() {
  return Refuse(absl::StatusCode::kAlreadyExists, 0, "this file was put there by this very request already",
                "sign it anew: sekisho put");
}

inline absl::Status UploadTakenOver(const std::string& job_id) {
  return Refuse(absl::StatusCode::kAborted, 0, fmt::format("the files of job {} come by another call now", job_id),
                "let that one go on, or end it and say it again");
}

}  // namespace sekisho::qserver::errors
