// SPDX-License-Identifier: Apache-2.0
// Attribute to field.
#include "rsl/field_setters.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "rsl/lexer.h"
#include "rsl/location.h"

namespace sekisho::rsl {
namespace {

using Setter = Failure (*)(const RelationReader&, JobDescription&);
using TextPairs = std::vector<std::pair<std::string, std::string>>;

template <std::string JobDescription::*field>
Failure SetText(const RelationReader& reader, JobDescription& job) {
  return reader.Text(job.*field);
}

template <std::optional<std::int64_t> JobDescription::*field>
Failure SetInteger(const RelationReader& reader, JobDescription& job) {
  return reader.Integer(job.*field);
}

template <std::optional<std::int64_t> JobDescription::*field>
Failure SetBytes(const RelationReader& reader, JobDescription& job) {
  return reader.Bytes(job.*field);
}

template <bool JobDescription::*field>
Failure SetYesNo(const RelationReader& reader, JobDescription& job) {
  return reader.YesNo(job.*field);
}

template <std::vector<std::string> JobDescription::*field>
Failure SetTexts(const RelationReader& reader, JobDescription& job) {
  return reader.Texts(job.*field);
}

template <std::vector<Transfer> JobDescription::*field>
Failure SetTransfers(const RelationReader& reader, JobDescription& job) {
  TextPairs pairs;
  if (Failure failure = reader.Pairs(pairs)) {
    return failure;
  }
  for (auto& [from, to] : pairs) {
    (job.*field).push_back({std::move(from), std::move(to)});
  }
  return std::nullopt;
}

template <std::vector<Destination> JobDescription::*field>
Failure SetDestinations(const RelationReader& reader, JobDescription& job) {
  TextPairs pairs;
  if (Failure failure = reader.Destinations(pairs)) {
    return failure;
  }
  for (auto& [target, tag] : pairs) {
    const Location location = ReadLocation(target);
    if ((location.kind == Location::Kind::kClient || location.kind == Location::Kind::kFile) && location.path.empty()) {
      return reader.Invalid(fmt::format("a path behind {}://", location.scheme), Quote(target));
    }
    (job.*field).push_back({std::move(target), std::move(tag)});
  }
  return std::nullopt;
}

// The later value of a name wins, as in a shell.
Failure SetEnvironment(const RelationReader& reader, JobDescription& job) {
  TextPairs pairs;
  if (Failure failure = reader.Pairs(pairs)) {
    return failure;
  }
  std::map<std::string, size_t> index;  // into job.environment, by name
  for (auto& [name, value] : pairs) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return reader.Invalid("a variable's name without \"=\"", Quote(name));
    }
    const auto [known, is_new] = index.emplace(name, job.environment.size());
    if (is_new) {
      job.environment.push_back({std::move(name), std::move(value)});
    } else {
      job.environment[known->second].value = std::move(value);
    }
  }
  return std::nullopt;
}

Failure SetJobType(const RelationReader& reader, JobDescription& job) {
  constexpr std::string_view kChoices[] = {"single", "multiple", "mpi", "condor"};
  size_t chosen = 0;
  if (Failure failure = reader.Choice(kChoices, chosen)) {
    return failure;
  }
  job.job_type = static_cast<JobType>(chosen);
  return std::nullopt;
}

Failure SetMpiType(const RelationReader& reader, JobDescription& job) {
  constexpr std::string_view kChoices[] = {"mpich", "openmpi"};
  size_t chosen = 0;
  if (Failure failure = reader.Choice(kChoices, chosen)) {
    return failure;
  }
  job.mpi_type = kChoices[chosen];
  return std::nullopt;
}

Failure SetArray(const RelationReader& reader, JobDescription& job) {
  std::string text;
  if (Failure failure = reader.Text(text)) {
    return failure;
  }
  job.array = ParseArray(text);
  return job.array ? std::nullopt : reader.Invalid(std::string(kArrayExpected), Quote(text));
}

Failure SetStartType(const RelationReader& reader, JobDescription& job) {
  constexpr std::string_view kChoices[] = {"strict-barrier", "loose-barrier", "no-barrier"};
  size_t chosen = 0;
  if (Failure failure = reader.Choice(kChoices, chosen)) {
    return failure;
  }
  job.part->start = static_cast<StartType>(chosen);
  return std::nullopt;
}

Failure SetCommsType(const RelationReader& reader, JobDescription& job) {
  constexpr std::string_view kChoices[] = {"blocking-join", "independent"};
  size_t chosen = 0;
  if (Failure failure = reader.Choice(kChoices, chosen)) {
    return failure;
  }
  job.part->comms = static_cast<CommsType>(chosen);
  return std::nullopt;
}

Failure CheckMyJob(const RelationReader& reader, JobDescription&) {
  constexpr std::string_view kChoices[] = {"collective", "independent"};
  size_t ignored = 0;
  return reader.Choice(kChoices, ignored);
}

Failure CheckText(const RelationReader& reader, JobDescription&) {
  std::string ignored;
  return reader.Text(ignored);
}

Failure CheckYesNo(const RelationReader& reader, JobDescription&) {
  bool ignored = false;
  return reader.YesNo(ignored);
}

Failure CheckInteger(const RelationReader& reader, JobDescription&) {
  std::int64_t ignored = 0;
  return reader.Integer(ignored, 1);
}

Failure CheckPairs(const RelationReader& reader, JobDescription&) {
  TextPairs ignored;
  return reader.Pairs(ignored);
}

// resource, arch, os, node, tags: = and != with one or more texts.
Failure AddTextCondition(const RelationReader& reader, JobDescription& job) {
  Condition condition{std::string(reader.attribute().name), reader.op(), {}};
  if (reader.op() != Operator::kNotEqual) {
    if (Failure failure = reader.Expect(Operator::kEqual)) {
      return failure;
    }
  }
  if (Failure failure = reader.Texts(condition.values)) {
    return failure;
  }
  job.conditions.push_back(std::move(condition));
  return std::nullopt;
}

// memory, clock: every operator with one whole number.
Failure AddNumberCondition(const RelationReader& reader, JobDescription& job) {
  std::int64_t value = 0;
  if (Failure failure = reader.Integer(value)) {
    return failure;
  }
  job.conditions.push_back(
      {std::string(reader.attribute().name), reader.op(), {std::to_string(value)}});
  return std::nullopt;
}

constexpr struct {
  std::string_view name;
  Setter set;
} kSetters[] = {
    {"executable", SetText<&JobDescription::executable>},
    {"arguments", SetTexts<&JobDescription::arguments>},
    {"directory", SetText<&JobDescription::directory>},
    {"environment", SetEnvironment},
    {"stdin", SetText<&JobDescription::standard_input>},
    {"stdout", SetDestinations<&JobDescription::standard_output>},
    {"stderr", SetDestinations<&JobDescription::standard_error>},
    {"count", [](const RelationReader& r, JobDescription& job) { return r.Integer(job.count, 1); }},
    {"host_count",
     [](const RelationReader& r, JobDescription& job) { return r.Integer(job.host_count, 1); }},
    {"job_type", SetJobType},
    {"gram_my_job", CheckMyJob},
    {"queue", SetText<&JobDescription::queue>},
    {"project", SetText<&JobDescription::project>},
    {"max_time", SetInteger<&JobDescription::max_time_minutes>},
    {"max_wall_time", SetInteger<&JobDescription::max_wall_time_minutes>},
    {"max_cpu_time", SetInteger<&JobDescription::max_cpu_time_minutes>},
    {"min_memory", SetInteger<&JobDescription::min_memory_mb>},
    {"max_memory", SetInteger<&JobDescription::max_memory_mb>},
    {"dry_run", SetYesNo<&JobDescription::is_dry_run>},
    {"save_state", SetYesNo<&JobDescription::is_state_saved>},
    {"two_phase", SetInteger<&JobDescription::two_phase_seconds>},
    {"remote_io_url", SetText<&JobDescription::remote_io_url>},
    {"scratch_dir", SetText<&JobDescription::scratch_dir>},
    {"restart", SetText<&JobDescription::restart_contact>},
    {"restartcontacts", CheckYesNo},
    {"stdout_position", SetBytes<&JobDescription::standard_output_position>},
    {"stderr_position", SetBytes<&JobDescription::standard_error_position>},
    {"file_stage_in", SetTransfers<&JobDescription::file_stage_in>},
    {"file_stage_in_shared", SetTransfers<&JobDescription::file_stage_in_shared>},
    {"file_stage_out", SetTransfers<&JobDescription::file_stage_out>},
    {"file_clean_up", SetTexts<&JobDescription::file_clean_up>},
    {"gass_cache", SetText<&JobDescription::gass_cache>},
    {"library_path", SetTexts<&JobDescription::library_path>},
    {"proxy_timeout", CheckInteger},
    {"username", SetText<&JobDescription::username>},
    {"savejobdescription", CheckYesNo},
    {"loglevel", CheckText},
    {"logpattern", CheckText},
    {"expiration", [](const RelationReader& r,
                      JobDescription& job) { return r.Integer(job.expiration_seconds); }},
    {"condorsubmit", CheckPairs},
    {"condoros", CheckText},
    {"condorarch", CheckText},
    {"xcount", CheckInteger},
    {"host_xcount", CheckInteger},
    {"name", CheckText},
    {"email_address", CheckText},
    {"email_on_abort", CheckYesNo},
    {"email_on_execution", CheckYesNo},
    {"email_on_termination", CheckYesNo},
    {"email_on_suspend", CheckYesNo},
    {"parallel_environment", CheckText},
    {"mpi_type", SetMpiType},
    {"job_dependency", CheckText},
    {"resourceManagerContact",
     [](const RelationReader& r, JobDescription& job) { return r.Text(job.part->contact); }},
    {"label", [](const RelationReader& r, JobDescription& job) { return r.Text(job.part->label); }},
    {"subjobStartType", SetStartType},
    {"subjobCommsType", SetCommsType},
    {"resource", AddTextCondition},
    {"arch", AddTextCondition},
    {"os", AddTextCondition},
    {"node", AddTextCondition},
    {"memory", AddNumberCondition},
    {"clock", AddNumberCondition},
    {"tags", AddTextCondition},
    {"exclusive", SetYesNo<&JobDescription::is_exclusive>},
    {"array", SetArray},
    {"after", SetTexts<&JobDescription::after>},
    {"after_any", SetTexts<&JobDescription::after_any>},
    {"hold", SetYesNo<&JobDescription::is_held>},
    {"umask",
     [](const RelationReader& r, JobDescription& job) { return r.Octal(job.umask, 0777); }},
};

}  // namespace

bool TakesOperators(const Attribute& attribute) {
  constexpr std::string_view kNames[] = {"resource", "arch",  "os",  "node",
                                         "memory",   "clock", "tags"};
  return std::find(std::begin(kNames), std::end(kNames), attribute.name) != std::end(kNames);
}

Failure SetField(const RelationReader& reader, JobDescription& job) {
  if (!TakesOperators(reader.attribute())) {
    if (Failure failure = reader.Expect(Operator::kEqual)) {
      return failure;
    }
  }
  for (const auto& setter : kSetters) {
    if (setter.name == reader.attribute().name) {
      return setter.set(reader, job);
    }
  }
  CHECK(false);  // an attribute of the table without a setter: a test walks the table
}

}  // namespace sekisho::rsl
