// SPDX-License-Identifier: Apache-2.0
// An evaluated request to a typed job.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "rsl/field_setters.h"
#include "rsl/gram_errors.h"
#include "rsl/job_description.h"
#include "rsl/lexer.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::rsl {
namespace {

// Of the substitutions that SplitParts() puts into every part.
constexpr size_t kCopiesSizeMax = 4 << 20;

constexpr std::string_view kAlternatives = "a job cannot be described by alternatives: choose one";

bool IsSubstitution(const Spec& spec) {
  return spec.kind == Spec::Kind::kRelation &&
         Canonical(spec.relation.attribute) == "rslsubstitution";
}

// The relations of nested conjunctions in order; a disjunction of one alternative is that
// alternative.
Failure Flatten(const Spec& spec, std::vector<const Spec*>& relations) {
  switch (spec.kind) {
    case Spec::Kind::kRelation:
      relations.push_back(&spec);
      return std::nullopt;
    case Spec::Kind::kMultiRequest:
      return Error{gram::BAD_RSL, "", spec.where, "expected one job, saw a multi-request (\"+\")",
                   ""};
    case Spec::Kind::kDisjunction:
      if (spec.children.size() != 1) {
        return Error{
            gram::BAD_RSL, "", spec.where,
            fmt::format("expected one job, saw {} alternatives (\"|\")", spec.children.size()),
            std::string(kAlternatives)};
      }
      break;
    case Spec::Kind::kConjunction:
      break;
  }
  for (const Spec& child : spec.children) {
    if (Failure failure = Flatten(child, relations)) {
      return failure;
    }
  }
  return std::nullopt;
}

Error UnknownAttribute(const Spec& relation) {
  const std::string_view nearest = NearestAttribute(relation.relation.attribute);
  return {gram::PARAMETER_NOT_SUPPORTED, "", relation.where,
          fmt::format("expected a known attribute, saw {}", Quote(relation.relation.attribute)),
          nearest.empty() ? "" : fmt::format("did you mean \"{}\"?", nearest)};
}

Failure CheckValidity(const Attribute& attribute, const Spec& relation, const JobDescription& job) {
  const std::string name(attribute.name);
  if (attribute.group == Attribute::Group::kPart) {
    if (job.part) {
      return std::nullopt;
    }
    return Error{gram::INVALID_SUBMIT_ATTRIBUTE, name, relation.where,
                 "expected it only in a part of a multi-request, saw it in a single job",
                 "write +( & (...) ), or name the site on the command line"};
  }
  switch (job.use) {
    case Use::kNewJob:
      if ((attribute.valid & kSubmit) == 0) {
        return Error{gram::INVALID_SUBMIT_ATTRIBUTE, name, relation.where,
                     "expected an attribute of a new job, saw one that is not valid there", ""};
      }
      break;
    case Use::kRestart:
      if ((attribute.valid & kRestart) == 0) {
        return Error{gram::INVALID_RESTART_ATTRIBUTE, name, relation.where,
                     "expected an attribute of a restart, saw one that is not valid there", ""};
      }
      break;
    case Use::kStdioUpdate:
      if ((attribute.valid & kUpdate) == 0) {
        return Error{gram::INVALID_STDIO_UPDATE_ATTRIBUTE, name, relation.where,
                     "expected an attribute of a stdio update, saw one that is not valid there",
                     ""};
      }
      break;
  }
  return std::nullopt;
}

// The same attribute twice is refused, but a bound from above and one from below are two
// statements.
Failure CheckRepeat(const Attribute& attribute, const Spec& relation,
                    const std::vector<const Spec*>& before) {
  for (const Spec* other : before) {
    if (Canonical(other->relation.attribute) != Canonical(attribute.name) ||
        (TakesOperators(attribute) && other->relation.op != relation.relation.op)) {
      continue;
    }
    return Error{attribute.malformed, std::string(attribute.name), relation.where,
                 fmt::format("expected it once, saw it again after {}:{}", other->where.line,
                             other->where.column),
                 ""};
  }
  return std::nullopt;
}

void AddLibraryPath(JobDescription& job) {
  if (job.library_path.empty()) {
    return;
  }
  constexpr std::string_view kName = "LD_LIBRARY_PATH";
  const std::string added = fmt::format("{}", fmt::join(job.library_path, ":"));
  for (EnvironmentVariable& variable : job.environment) {
    if (variable.name == kName) {
      variable.value += variable.value.empty() ? added : ":" + added;
      return;
    }
  }
  job.environment.push_back({std::string(kName), added});
}

Failure CheckWhole(const JobDescription& job) {
  if (job.use == Use::kNewJob && job.executable.empty()) {
    return Error{gram::UNDEFINED_EXE, "executable", job.where, "expected an executable, saw none",
                 "add (executable = /path/of/program)"};
  }
  const bool has_stream = job.Has("stdout") || job.Has("stderr") || job.Has("stdout_position") || job.Has("stderr_position");
  if (job.use == Use::kStdioUpdate && !has_stream) {
    return Error{gram::UNDEFINED_ATTRIBUTE, "stdout", job.where, "expected where a stream is to go, saw nothing of it",
                 "add (stdout = DESTINATION), or stderr, or a position of one"};
  }
  if (job.host_count && job.job_type != JobType::kSingle && *job.host_count > job.count) {
    return Error{gram::INVALID_HOST_COUNT, "host_count", job.WhereIs("host_count"),
                 fmt::format("expected at most {}, the count of processes, saw {}", job.count,
                             *job.host_count),
                 fmt::format("add (count = {})", *job.host_count)};
  }
  if (job.min_memory_mb && job.max_memory_mb && *job.min_memory_mb > *job.max_memory_mb) {
    return Error{gram::INVALID_MIN_MEMORY, "min_memory", job.WhereIs("min_memory"),
                 fmt::format("expected at most max_memory, {}, saw {}", *job.max_memory_mb,
                             *job.min_memory_mb),
                 ""};
  }
  if (job.part && job.part->contact.empty()) {
    return Error{gram::UNDEFINED_ATTRIBUTE, "resourceManagerContact", job.where,
                 "expected a contact in each part, saw none",
                 "add (resourceManagerContact = \"SITE\")"};
  }
  return std::nullopt;
}

Result<JobDescription> DescribeOne(const Spec& spec, JobDescription job) {
  std::vector<const Spec*> relations;
  if (Failure failure = Flatten(spec, relations)) {
    return *std::move(failure);
  }
  job.where = spec.where;
  if (job.use == Use::kNewJob && std::any_of(relations.begin(), relations.end(), [](const Spec* r) {
        return Canonical(r->relation.attribute) == "restart";
      })) {
    job.use = Use::kRestart;
  }

  std::vector<const Spec*> before;
  for (const Spec* relation : relations) {
    const Attribute* attribute = FindAttribute(relation->relation.attribute);
    if (attribute == nullptr) {
      return UnknownAttribute(*relation);
    }
    if (Failure failure = CheckValidity(*attribute, *relation, job)) {
      return *std::move(failure);
    }
    if (IsSubstitution(*relation)) {
      continue;  // the evaluator's
    }
    if (Failure failure = CheckRepeat(*attribute, *relation, before)) {
      return *std::move(failure);
    }
    if (Failure failure = SetField(RelationReader(*attribute, *relation), job)) {
      return *std::move(failure);
    }
    before.push_back(relation);
    job.given.push_back({attribute, relation->where});
  }
  AddLibraryPath(job);
  if (Failure failure = CheckWhole(job)) {
    return *std::move(failure);
  }
  return job;
}

}  // namespace

Result<JobDescription> Describe(const Spec& evaluated, Use use) {
  JobDescription job;
  job.use = use;
  return DescribeOne(evaluated, std::move(job));
}

Result<std::vector<JobDescription>> DescribeParts(const Spec& evaluated) {
  std::vector<JobDescription> parts;
  if (evaluated.kind != Spec::Kind::kMultiRequest) {
    RSL_TRY(JobDescription job, Describe(evaluated));
    parts.push_back(std::move(job));
    return parts;
  }
  std::set<std::string> labels;
  for (const Spec& child : evaluated.children) {
    if (IsSubstitution(child)) {
      continue;
    }
    JobDescription job;
    job.part = Part{"", fmt::format("subjob {}", parts.size())};
    RSL_TRY(job, DescribeOne(child, std::move(job)));
    if (!labels.insert(job.part->label).second) {
      return Error{gram::INVALID_SCHEDULER_SPECIFIC, "label", child.where,
                   fmt::format("expected a label of its own in each part, saw {} again",
                               Quote(job.part->label)),
                   ""};
    }
    parts.push_back(std::move(job));
  }
  if (parts.empty()) {
    return Error{gram::NULL_SPECIFICATION_TREE, "", evaluated.where,
                 "expected at least one part, saw none", ""};
  }
  return parts;
}

Result<JobDescription> ParseAndDescribe(std::string_view text, const Variables& variables,
                                        Use use) {
  RSL_TRY(const Spec spec, Parse(text));
  RSL_TRY(const Spec evaluated, Evaluate(spec, variables));
  return Describe(evaluated, use);
}

Result<std::vector<JobDescription>> ParseAndDescribeParts(std::string_view text,
                                                          const Variables& variables) {
  RSL_TRY(const Spec spec, Parse(text));
  RSL_TRY(const Spec evaluated, Evaluate(spec, variables));
  return DescribeParts(evaluated);
}

Result<std::vector<Spec>> SplitParts(const Spec& spec) {
  if (spec.kind != Spec::Kind::kMultiRequest) {
    return std::vector<Spec>{spec};
  }
  std::vector<Spec> parts;
  std::vector<Spec> substitutions;  // so far, from left to right
  size_t size = 0;                  // of their text
  size_t size_of_copies = 0;
  for (const Spec& child : spec.children) {
    if (IsSubstitution(child)) {
      substitutions.push_back(child);
      size += Print(child).size();
      continue;
    }
    size_of_copies += size;
    if (size_of_copies > kCopiesSizeMax) {
      return Error{
          gram::INVALID_REQUEST, "rsl_substitution", child.where,
          fmt::format("expected definitions of at most {} bytes in all parts together, saw more",
                      kCopiesSizeMax),
          "define in each part what it needs"};
    }
    if (child.kind == Spec::Kind::kMultiRequest) {
      return Error{gram::BAD_RSL, "", child.where, "expected one job, saw a multi-request (\"+\")",
                   ""};
    }
    Spec part = child;
    if (child.kind != Spec::Kind::kConjunction || !substitutions.empty()) {
      part = Spec{Spec::Kind::kConjunction, {}, substitutions, child.where};
      if (child.kind == Spec::Kind::kConjunction) {
        part.children.insert(part.children.end(), child.children.begin(), child.children.end());
      } else {
        part.children.push_back(child);
      }
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace sekisho::rsl
