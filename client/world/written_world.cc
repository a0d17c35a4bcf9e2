// SPDX-License-Identifier: Apache-2.0
#include "client/world/written_world.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/part_name.h"
#include "rsl/check.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::client {
namespace {

constexpr char kIndex[] = "GLOBUS_DUROC_SUBJOB_INDEX";

bool IsRelation(const rsl::Spec& spec, std::string_view attribute) {
  return spec.kind == rsl::Spec::Kind::kRelation &&
         rsl::Canonical(spec.relation.attribute) == rsl::Canonical(attribute);
}

// What only a part may have, and how the site would start it by itself: here each rank is a task.
bool IsOursToSay(const rsl::Spec& spec) {
  if (spec.kind != rsl::Spec::Kind::kRelation) {
    return false;
  }
  const rsl::Attribute* attribute = rsl::FindAttribute(spec.relation.attribute);
  return (attribute != nullptr && attribute->group == rsl::Attribute::Group::kPart) ||
         IsRelation(spec, "job_type");
}

// The relations of nested conjunctions are a job's like others.
void Strip(rsl::Spec& spec) {
  std::erase_if(spec.children, IsOursToSay);
  for (rsl::Spec& child : spec.children) {
    Strip(child);
  }
}

rsl::Spec IsMultiple() {
  rsl::Spec type;
  type.relation.attribute = "job_type";
  type.relation.values.push_back({rsl::Value::Kind::kLiteral, "multiple", {}, {}});
  return type;
}

std::string NameOf(rsl::StartType start) {
  return start == rsl::StartType::kLooseBarrier ? "loose-barrier"
         : start == rsl::StartType::kNoBarrier  ? "no-barrier"
                                                : "";
}

// "" or what a part of an MPI program cannot be.
std::string Complaint(const rsl::JobDescription& job, size_t number) {
  if (!job.part) {
    return "expected a multi-request, +( &(resourceManagerContact=...)... )( &... ), saw one job";
  }
  const std::string name = PartName(int(number), job.part->label);
  if (job.job_type == rsl::JobType::kCondor) {
    return name + ": jobtype=condor is no MPI program's";
  }
  if (job.job_type == rsl::JobType::kSingle && job.count != 1) {
    return fmt::format("{}: jobtype=single is one process, and count is {}", name, job.count);
  }
  for (const rsl::EnvironmentVariable& variable : job.environment) {
    if (variable.name == kIndex && variable.value != std::to_string(number)) {
      return fmt::format("{}: {} is {}; the parts are numbered from 0 in their order: {}", name,
                         kIndex, variable.value, number);
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<std::vector<WrittenPart>> ParseWrittenWorld(const std::string& text,
                                                           const std::string& source) {
  const auto refused = [&source](const std::string& what) {
    return absl::InvalidArgumentError(fmt::format("{}:{}", source, what));
  };
  const rsl::CheckReport checked = rsl::Check(text);
  if (checked.error) {
    return refused(checked.error->ToString());
  }
  const auto parsed = rsl::Parse(text);
  auto specs = rsl::SplitParts(*parsed);
  if (!specs.ok()) {
    return refused(specs.error().ToString());
  }
  if (specs->empty() || specs->size() != checked.jobs.size() || specs->size() > kMachinesMax) {
    return refused(fmt::format("1: expected 1 to {} parts, saw {}", kMachinesMax, specs->size()));
  }
  std::vector<WrittenPart> parts;
  int64_t next = 0;
  for (size_t i = 0; i < specs->size(); ++i) {
    const rsl::JobDescription& job = checked.jobs[i];
    if (const std::string complaint = Complaint(job, i); !complaint.empty()) {
      return refused(fmt::format("{}:{}: {}", job.where.line, job.where.column, complaint));
    }
    if (next + job.count > kRanksMax) {
      return refused(fmt::format("{}:{}: expected at most {} ranks, saw more", job.where.line,
                                 job.where.column, kRanksMax));
    }
    rsl::Spec& spec = (*specs)[i];
    Strip(spec);
    spec.children.push_back(IsMultiple());
    WrittenPart& part = parts.emplace_back();
    part.ranks.contact = job.part->contact;
    part.ranks.is_independent = job.part->comms == rsl::CommsType::kIndependent;
    part.ranks.first = part.ranks.is_independent ? 0 : int(next);
    part.ranks.count = int(job.count);
    part.ranks.start_type = NameOf(job.part->start);
    if (job.part->label != fmt::format("subjob {}", i)) {  // which says no more than the number
      part.ranks.label = job.part->label;
    }
    part.rsl = rsl::Print(spec);
    next += part.ranks.is_independent ? 0 : job.count;
  }
  return parts;
}

}  // namespace sekisho::client
