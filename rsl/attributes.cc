// SPDX-License-Identifier: Apache-2.0
// The table of attributes.
#include "rsl/attributes.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "rsl/ast.h"
#include "rsl/gram_errors.h"

namespace sekisho::rsl {
namespace {

using enum Attribute::Group;
using enum Attribute::Support;

constexpr unsigned kAlways = kSubmit | kRestart | kUpdate;

constexpr std::string_view kSlurm = "it comes with the Slurm executor";
constexpr std::string_view kOther = "no executor here has it";
constexpr std::string_view kDaemonWide = "a daemon's log is the site's, not the job's";

// For an attribute without numbers of its own GRAM answers these two.
constexpr int kShape = gram::RSL_SCHEDULER_SPECIFIC;
constexpr int kBad = gram::INVALID_SCHEDULER_SPECIFIC;

constexpr Attribute kAttributes[] = {
    {"executable", kGram, kSubmit, kYes, gram::RSL_EXECUTABLE, gram::RSL_EXECUTABLE},
    {"arguments", kGram, kSubmit, kYes, gram::RSL_ARGUMENTS, gram::BAD_ARGUMENTS},
    {"directory", kGram, kSubmit, kYes, gram::RSL_DIRECTORY, gram::BAD_DIRECTORY},
    {"environment", kGram, kSubmit, kYes, gram::RSL_ENVIRONMENT, gram::BAD_RSL_ENVIRONMENT},
    {"stdin", kGram, kSubmit, kYes, gram::RSL_STDIN, gram::RSL_STDIN},
    {"stdout", kGram, kAlways, kYes, gram::RSL_STDOUT, gram::RSL_STDOUT},
    {"stderr", kGram, kAlways, kYes, gram::RSL_STDERR, gram::RSL_STDERR},
    {"count", kGram, kSubmit, kYes, gram::RSL_COUNT, gram::INVALID_COUNT},
    {"host_count", kGram, kSubmit, kYes, gram::RSL_HOST_COUNT, gram::INVALID_HOST_COUNT},
    {"job_type", kGram, kSubmit, kYes, gram::RSL_JOBTYPE, gram::INVALID_JOBTYPE},
    {"gram_my_job", kGram, kSubmit, kYes, gram::RSL_MYJOB, gram::INVALID_GRAM_MYJOB},
    {"queue", kGram, kSubmit, kYes, gram::RSL_QUEUE, gram::INVALID_QUEUE},
    {"project", kGram, kSubmit, kYes, gram::RSL_PROJECT, gram::INVALID_PROJECT},
    {"max_time", kGram, kSubmit, kYes, gram::RSL_MAXTIME, gram::INVALID_MAXTIME},
    {"max_wall_time", kGram, kSubmit, kYes, gram::RSL_MAX_WALL_TIME, gram::INVALID_MAX_WALL_TIME},
    {"max_cpu_time", kGram, kSubmit, kYes, gram::RSL_MAX_CPU_TIME, gram::INVALID_MAX_CPU_TIME},
    {"min_memory", kGram, kSubmit, kYes, gram::RSL_MIN_MEMORY, gram::INVALID_MIN_MEMORY},
    {"max_memory", kGram, kSubmit, kYes, gram::RSL_MAX_MEMORY, gram::INVALID_MAX_MEMORY},
    {"dry_run", kGram, kSubmit, kYes, gram::RSL_DRYRUN, gram::RSL_DRYRUN},
    {"save_state", kGram, kSubmit, kYes, gram::RSL_SAVE_STATE, gram::INVALID_SAVE_STATE},
    {"two_phase", kGram, kSubmit, kYes, gram::RSL_TWO_PHASE_COMMIT, gram::INVALID_TWO_PHASE_COMMIT},
    {"remote_io_url", kGram, kAlways, kNever, gram::RSL_REMOTE_IO_URL, gram::RSL_REMOTE_IO_URL,
     "no server runs at the client; `sekisho get` and `put` reach the job's files"},
    {"scratch_dir", kGram, kSubmit, kYes, gram::RSL_SCRATCH, gram::INVALID_SCRATCH},
    {"rsl_substitution", kGram, kAlways, kYes, gram::RSL_EVALUATION_FAILED,
     gram::RSL_EVALUATION_FAILED},
    {"restart", kGram, kRestart, kYes, gram::RSL_RESTART, gram::RSL_RESTART},
    {"restartcontacts", kGram, kRestart, kNever, kShape, kBad, "watchers attach anew here"},
    {"stdout_position", kGram, kRestart | kUpdate, kYes, gram::RSL_STDOUT_POSITION,
     gram::INVALID_STDOUT_POSITION},
    {"stderr_position", kGram, kRestart | kUpdate, kYes, gram::RSL_STDERR_POSITION,
     gram::INVALID_STDERR_POSITION},
    {"file_stage_in", kGram, kSubmit, kYes, gram::RSL_FILE_STAGE_IN, gram::RSL_FILE_STAGE_IN},
    {"file_stage_in_shared", kGram, kSubmit, kYes, gram::RSL_FILE_STAGE_IN_SHARED,
     gram::RSL_FILE_STAGE_IN_SHARED},
    {"file_stage_out", kGram, kSubmit, kYes, gram::RSL_FILE_STAGE_OUT, gram::RSL_FILE_STAGE_OUT},
    {"file_clean_up", kGram, kSubmit, kYes, gram::RSL_FILE_CLEANUP, gram::RSL_FILE_CLEANUP},
    {"gass_cache", kGram, kSubmit, kYes, gram::RSL_GASS_CACHE, gram::INVALID_CACHE},
    {"library_path", kGram, kSubmit, kYes, kShape, kBad},
    {"proxy_timeout", kGram, kSubmit | kRestart, kNever, gram::RSL_PROXY_TIMEOUT,
     gram::INVALID_PROXY_TIMEOUT, "GRAM5 made it a setting of the job manager"},
    {"username", kGram, kSubmit, kYes, gram::RSL_USER_NAME, gram::RSL_USER_NAME},
    {"savejobdescription", kGram, kSubmit, kNever, kShape, kBad,
     "`sekisho status --json` shows the job"},
    {"loglevel", kGram, kSubmit, kNever, kShape, kBad, kDaemonWide},
    {"logpattern", kGram, kSubmit, kNever, kShape, kBad, kDaemonWide},
    {"expiration", kGram, kSubmit, kNever, kShape, kBad,
     "the site says how long it keeps ended jobs"},

    {"condorsubmit", kLrm, kSubmit, kNever, kShape, kBad, kOther},
    {"condoros", kLrm, kSubmit, kNever, kShape, gram::CONDOR_OS, kOther},
    {"condorarch", kLrm, kSubmit, kNever, kShape, gram::CONDOR_ARCH, kOther},
    {"xcount", kLrm, kSubmit, kNever, kShape, kBad, kOther},
    {"host_xcount", kLrm, kSubmit, kNever, kShape, kBad, kOther},
    {"name", kLrm, kSubmit, kLater, kShape, kBad, kSlurm},
    {"email_address", kLrm, kSubmit, kLater, kShape, kBad, kSlurm},
    {"email_on_abort", kLrm, kSubmit, kLater, kShape, kBad, kSlurm},
    {"email_on_execution", kLrm, kSubmit, kLater, kShape, kBad, kSlurm},
    {"email_on_termination", kLrm, kSubmit, kLater, kShape, kBad, kSlurm},
    {"email_on_suspend", kLrm, kSubmit, kNever, kShape, kBad, kOther},
    {"parallel_environment", kLrm, kSubmit, kNever, kShape, kBad, kOther},
    {"mpi_type", kLrm, kSubmit, kYes, kShape, kBad},
    {"job_dependency", kLrm, kSubmit, kLater, kShape, kBad, kSlurm},

    {"resourceManagerContact", kPart, kInPart, kYes, kShape, gram::BAD_GATEKEEPER_CONTACT},
    {"label", kPart, kInPart, kYes, kShape, kBad},
    {"subjobStartType", kPart, kInPart, kYes, kShape, kBad},
    {"subjobCommsType", kPart, kInPart, kYes, kShape, kBad},

    {"resource", kOurs, kSubmit, kYes, kShape, kBad},
    {"arch", kOurs, kSubmit, kYes, kShape, kBad},
    {"os", kOurs, kSubmit, kYes, kShape, kBad},
    {"memory", kOurs, kSubmit, kYes, kShape, kBad},
    {"clock", kOurs, kSubmit, kYes, kShape, kBad},
    {"tags", kOurs, kSubmit, kYes, kShape, kBad},
    {"node", kOurs, kSubmit, kYes, kShape, kBad},
    {"exclusive", kOurs, kSubmit, kYes, kShape, kBad},
    {"umask", kOurs, kSubmit, kYes, kShape, kBad},
    {"array", kOurs, kSubmit, kYes, kShape, kBad},
    {"after", kOurs, kSubmit, kYes, kShape, kBad},
    {"after_any", kOurs, kSubmit, kYes, kShape, kBad},
    {"hold", kOurs, kSubmit, kYes, kShape, kBad},
};

// Insertions, deletions, changes and swaps of neighbours between two canonical names.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::span<const Attribute> Attributes() { return kAttributes; }

const Attribute* FindAttribute(std::string_view name) {
  const std::string canonical = Canonical(name);
  for (const Attribute& attribute : kAttributes) {
    if (Canonical(attribute.name) == canonical) {
      return &attribute;
    }
  }
  return nullptr;
}

std::string_view NearestAttribute(std::string_view name) {
  const std::string canonical = Canonical(name);
  if (canonical.size() > 64) {
    return "";
  }
  std::string_view nearest;
  size_t best = std::numeric_limits<size_t>::max();
  for (const Attribute& attribute : kAttributes) {
    const std::string other = Canonical(attribute.name);
    const size_t distance = EditDistance(canonical, other);
    if (distance < best &&
        distance <= std::max<size_t>(1, std::min(canonical.size(), other.size()) / 3)) {
      best = distance;
      nearest = attribute.name;
    }
  }
  return nearest;
}

}  // namespace sekisho::rsl
