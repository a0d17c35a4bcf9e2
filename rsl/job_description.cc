// SPDX-License-Identifier: Apache-2.0
// Questions that a described job answers.
#include "rsl/job_description.h"

#include <algorithm>

#include <fmt/format.h>

#include "rsl/gram_errors.h"
#include "rsl/lexer.h"
#include "rsl/location.h"

namespace sekisho::rsl {
namespace {

// Of those that a site fetches files from, or sends them to.
bool IsKnown(std::string_view location) { return ReadLocation(location).kind != Location::Kind::kOther; }

}  // namespace

std::string_view ToText(JobType type) {
  switch (type) {
    case JobType::kSingle:
      return "single";
    case JobType::kMultiple:
      return "multiple";
    case JobType::kMpi:
      return "mpi";
    case JobType::kCondor:
      return "condor";
  }
  return "?";
}

bool JobDescription::Has(std::string_view attribute) const {
  const Attribute* wanted = FindAttribute(attribute);
  return std::any_of(given.begin(), given.end(),
                     [&](const Given& g) { return g.attribute == wanted; });
}

Position JobDescription::WhereIs(std::string_view attribute) const {
  const Attribute* wanted = FindAttribute(attribute);
  for (const Given& g : given) {
    if (g.attribute == wanted) {
      return g.where;
    }
  }
  return where;
}

std::optional<std::int64_t> JobDescription::WallTimeMinutes() const {
  if (max_wall_time_minutes && max_time_minutes) {
    return std::min(*max_wall_time_minutes, *max_time_minutes);
  }
  return max_wall_time_minutes ? max_wall_time_minutes : max_time_minutes;
}

std::vector<Error> Unsupported(const JobDescription& job) {
  std::vector<Error> errors;
  const auto refuse = [&](int code, std::string_view attribute, std::string message, std::string remedy) {
    errors.push_back(
        {code, std::string(attribute), job.WhereIs(attribute), std::move(message), std::move(remedy)});
  };

  for (const JobDescription::Given& g : job.given) {
    if (g.attribute->support != Attribute::Support::kYes) {
      const bool is_later = g.attribute->support == Attribute::Support::kLater;
      errors.push_back({gram::PARAMETER_NOT_SUPPORTED, std::string(g.attribute->name), g.where,
                        fmt::format("{} is not supported{}: {}", g.attribute->name,
                                    is_later ? " yet" : "", g.attribute->reason),
                        "leave it out"});
    }
  }
  if (job.job_type == JobType::kCondor) {
    refuse(gram::JOBTYPE_NOT_SUPPORTED, "job_type",
           "job_type=condor is not supported: no executor here has it",
           "leave it out, or say single, multiple or mpi");
  }
  const auto refuse_place = [&](std::string_view attribute, std::string_view word, std::string_view value) {
    if (!IsKnown(value)) {
      refuse(gram::PARAMETER_NOT_SUPPORTED, attribute,
             fmt::format("{} {} {} is not supported: expected client://PATH, file://PATH or http[s]://HOST/PATH",
                         attribute, word, Quote(value)),
             "name a file of the client, of the site or of a web server");
    }
  };
  const auto refuse_source = [&](std::string_view attribute, std::string_view value) {
    refuse_place(attribute, "from", value);
  };
  refuse_source("executable", job.executable);
  refuse_source("stdin", job.standard_input);
  for (const Transfer& transfer : job.file_stage_in) {
    refuse_source("file_stage_in", transfer.from);
  }
  for (const Transfer& transfer : job.file_stage_in_shared) {
    refuse_source("file_stage_in_shared", transfer.from);
  }
  for (const Transfer& transfer : job.file_stage_out) {
    refuse_place("file_stage_out", "to", transfer.to);
  }
  for (const auto& [name, destinations] :
       {std::pair{"stdout", &job.standard_output}, std::pair{"stderr", &job.standard_error}}) {
    for (const Destination& destination : *destinations) {
      if (!IsCacheUrl(destination.target)) {
        refuse_place(name, "to", destination.target);
      }
    }
  }
  return errors;
}

Error NotASubmission(const JobDescription& restart) {
  return {gram::RESTART_FAILED, "restart", restart.WhereIs("restart"),
          "expected a description of a new job, saw one that takes up another",
          "take it up by itself, with this version of sekisho: sekisho run '&(restart=JOB)'"};
}

}  // namespace sekisho::rsl
