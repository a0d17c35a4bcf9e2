// SPDX-License-Identifier: Apache-2.0
// Parse, evaluate, describe: as far as the text goes.
#include "rsl/check.h"

#include <algorithm>

#include "rsl/parser.h"

namespace sekisho::rsl {
namespace {

bool SpeaksOfAJob(const Spec& spec) {
  if (spec.kind == Spec::Kind::kRelation) {
    return FindAttribute(spec.relation.attribute) != nullptr ||
           !NearestAttribute(spec.relation.attribute).empty();
  }
  return std::any_of(spec.children.begin(), spec.children.end(), SpeaksOfAJob);
}

}  // namespace

CheckReport Check(std::string_view text, CheckDepth depth) {
  CheckReport report;
  const Result<Spec> spec = Parse(text);
  if (!spec.ok()) {
    report.error = spec.error();
    return report;
  }
  report.is_job = SpeaksOfAJob(*spec);
  if (depth == CheckDepth::kGrammar || !report.is_job) {
    return report;
  }

  const Result<Spec> evaluated = Evaluate(*spec, UnknownSiteVariables());
  if (!evaluated.ok()) {
    report.error = evaluated.error();
    return report;
  }
  Result<std::vector<JobDescription>> jobs = DescribeParts(*evaluated);
  if (!jobs.ok()) {
    report.error = jobs.error();
    return report;
  }
  report.jobs = *std::move(jobs);
  for (const JobDescription& job : report.jobs) {
    const std::vector<Error> unsupported = Unsupported(job);
    report.warnings.insert(report.warnings.end(), unsupported.begin(), unsupported.end());
  }
  return report;
}

}  // namespace sekisho::rsl
