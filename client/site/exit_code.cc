// SPDX-License-Identifier: Apache-2.0
#include "client/site/exit_code.h"

#include <fmt/format.h>

#include "client/site/harmless.h"
#include "common/job_state.h"
#include "rsl/gram_errors.h"

namespace sekisho::client {
namespace {

std::string Shape(const std::string& reason, int gram_code, const std::string& remedy) {
  std::string text = "sekisho: " + Harmless(reason);
  if (gram_code != 0 && reason.find("GRAM error") == std::string::npos) {
    text += fmt::format(" (GRAM error {}, {})", gram_code, rsl::GramErrorName(gram_code));
  }
  text += "\n";
  if (!remedy.empty()) {
    text += "  -> " + Harmless(remedy) + "\n";
  }
  return text;
}

}  // namespace

int ExitCodeOf(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return kExitRefused;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnknown:
      return kExitUnknown;
    default:
      return kExitFailed;
  }
}

int ExitCodeOf(const proto::JobStatus& job) {
  if (job.state() == proto::UNKNOWN) {
    return kExitUnknown;
  }
  if (job.state() == proto::CANCELLED) {
    return kExitCancelled;  // whatever signal that took
  }
  if (job.gram_code() != 0) {
    return kExitFailed;  // a limit or a fault ended it, by whatever signal
  }
  if (job.exit().signal() != 0) {
    return 128 + job.exit().signal();
  }
  if (job.state() == proto::FAILED && job.exit().code() == 0) {
    return kExitFailed;
  }
  return job.exit().code();
}

std::string ErrorText(const absl::Status& error) {
  return Shape(Message(error), GramCode(error), Remedy(error));
}

std::string EndText(const proto::JobStatus& job) {
  const bool has_more_to_say = job.has_array() && !job.reason().empty();  // which of its elements
  if ((job.state() == proto::DONE && !has_more_to_say) || (job.reason().empty() && job.state() == proto::FAILED)) {
    return "";
  }
  const std::string reason =
      job.reason().empty() ? "the job is " + StateName(job.state()) : job.reason();
  return Shape(fmt::format("{}/{}: {}", job.site(), job.job_id(), reason), job.gram_code(), job.remedy());
}

}  // namespace sekisho::client
