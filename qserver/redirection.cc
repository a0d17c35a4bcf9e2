// SPDX-License-Identifier: Apache-2.0
#include "qserver/redirection.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "common/job_state.h"
#include "qserver/errors.h"
#include "qserver/redirection_errors.h"
#include "qserver/tasks.h"
#include "rsl/gram_errors.h"
#include "rsl/lexer.h"

namespace sekisho::qserver {
namespace {

namespace gram = rsl::gram;

constexpr const char* kNames[rsl::kStreams] = {"stdout", "stderr"};

const std::vector<rsl::Destination>& DestinationsOf(const rsl::JobDescription& job, int stream) {
  return stream == 0 ? job.standard_output : job.standard_error;
}

const std::optional<int64_t>& PositionOf(const rsl::JobDescription& update, int stream) {
  return stream == 0 ? update.standard_output_position : update.standard_error_position;
}

std::vector<std::string> Targets(const std::vector<rsl::Destination>& destinations) {
  std::vector<std::string> targets;
  for (const rsl::Destination& destination : destinations) {
    targets.push_back(destination.target);
  }
  return targets;
}

// What a stream's destinations have of it: by a position only they can go on where they are.
absl::Status CheckPosition(const Job& job, const rsl::JobDescription& description, const rsl::JobDescription& update,
                           int stream, const rsl::Redirection& to) {
  const std::string attribute = fmt::format("{}_position", kNames[stream]);
  const auto refusal = [&](const std::string& expected, const std::string& remedy) {
    return errors::BadRsl({stream == 0 ? gram::INVALID_STDOUT_POSITION : gram::INVALID_STDERR_POSITION, attribute,
                           update.WhereIs(attribute), fmt::format("expected {}, saw {}", expected, to.position), remedy});
  };
  constexpr char kLeaveOut[] = "leave it out: all of it goes there";
  if (to.position == 0) {
    return absl::OkStatus();
  }
  if (const int tasks = TaskCount(description); tasks > 1) {
    return refusal(fmt::format("0, as there are {} tasks, of which each writes its own", tasks), kLeaveOut);
  }
  if (const auto file = std::find_if(to.to.begin(), to.to.end(), rsl::IsFile); file != to.to.end()) {
    return refusal(fmt::format("0, as {} is a file, which is written whole", rsl::Quote(*file)), kLeaveOut);
  }
  const uint64_t written = job.tasks.empty() ? 0 : job.tasks[0].spooled[size_t(stream)];
  if (to.position > written) {
    return refusal(fmt::format("at most {}, all that has been written so far", written),
                   "give what the receiver has: see sekisho output JOB");
  }
  return absl::OkStatus();
}

// All that was to go of it; empty: something still has to, or nothing ever had.
std::string GoneTo(const proto::JobStatus& status, const std::vector<rsl::Outgoing>& outgoing, int stream) {
  std::string gone;
  for (const rsl::Outgoing& item : outgoing) {
    if (item.attribute != kNames[stream]) {
      continue;
    }
    const auto& files = status.staged_out();
    if (std::none_of(files.begin(), files.end(), [&](const auto& file) { return file.number() == item.number; })) {
      return "";
    }
    gone = item.to;
  }
  return gone;
}

proto::OutputTo ToProto(const rsl::Redirection& redirection) {
  proto::OutputTo to;
  to.mutable_destination()->Assign(redirection.to.begin(), redirection.to.end());
  to.set_position(redirection.position);
  to.set_number(redirection.number);
  return to;
}

}  // namespace

rsl::Redirections RedirectionsOf(const proto::JobStatus& job) {
  const auto read = [](const proto::OutputTo& to) {
    return rsl::Redirection{{to.destination().begin(), to.destination().end()}, to.position(), to.number()};
  };
  rsl::Redirections redirections;
  if (job.has_standard_output()) {
    redirections[0] = read(job.standard_output());
  }
  if (job.has_standard_error()) {
    redirections[1] = read(job.standard_error());
  }
  return redirections;
}

absl::StatusOr<proto::JobEvent::Redirected> JudgeRedirection(const Job& job, const rsl::JobDescription& update,
                                                             const std::string& home, const StagingRules& rules) {
  const std::string& job_id = job.status.job_id();
  if (job.array != nullptr || job.status.has_array()) {
    return errors::NoRedirectionInArrays(job_id);
  }
  if (IsFinal(job.status.state()) || job.status.cancelling()) {
    return errors::TooLateToRedirect(job_id, IsFinal(job.status.state()) ? StateName(job.status.state()) : "being cancelled");
  }
  const auto description = rsl::ParseAndDescribe(job.status.rsl(), {});
  CHECK(description.ok());  // it was, when it was accepted

  rsl::Redirections after = RedirectionsOf(job.status);
  proto::JobEvent::Redirected redirected;
  for (int stream = 0; stream < rsl::kStreams; ++stream) {
    const std::vector<rsl::Destination>& asked = DestinationsOf(update, stream);
    const std::optional<int64_t>& position = PositionOf(update, stream);
    if (asked.empty() && !position) {
      continue;
    }
    const std::vector<rsl::Destination>& submitted = DestinationsOf(*description, stream);
    if (const std::string path = rsl::WrittenByTasks(submitted); !path.empty()) {
      return errors::WrittenByItsTasks(job_id, kNames[stream], path);
    }
    std::optional<rsl::Redirection>& stands = after[size_t(stream)];
    rsl::Redirection to{!asked.empty() ? Targets(asked) : stands ? stands->to : Targets(submitted),
                        uint64_t(position.value_or(0)), rsl::NextNumber(*description, after)};
    if (stands && stands->to == to.to && stands->position == to.position) {
      continue;
    }
    if (const std::string gone = GoneTo(job.status, rsl::OutgoingOf(*description, after), stream); !gone.empty()) {
      return errors::GoneAlready(job_id, kNames[stream], gone);
    }
    RETURN_IF_ERROR(CheckPosition(job, *description, update, stream, to));
    *(stream == 0 ? redirected.mutable_standard_output() : redirected.mutable_standard_error()) = ToProto(to);
    stands = std::move(to);
  }
  RETURN_IF_ERROR(PlanStageOut(*description, home, job_id, rules, after).status());
  return redirected;
}

}  // namespace sekisho::qserver
