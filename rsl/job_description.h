// SPDX-License-Identifier: Apache-2.0
// What a job is, typed and checked: docs/protocol/1-rsl.md, "Attributes".  A field that holds no
// value was not given and has no default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rsl/array.h"
#include "rsl/ast.h"
#include "rsl/attributes.h"
#include "rsl/error.h"
#include "rsl/evaluator.h"

namespace sekisho::rsl {

enum class JobType {
  kSingle,    // one process, whatever `count`
  kMultiple,  // `count` processes
  kMpi,       // the site's MPI launcher with `count`
  kCondor,
};

std::string_view ToText(JobType type);

struct EnvironmentVariable {
  std::string name;
  std::string value;
  bool operator==(const EnvironmentVariable&) const = default;
};

// A path inside the site, or a URL; the tag names an entry of GRAM's cache.
struct Destination {
  std::string target;
  std::string tag;
  bool operator==(const Destination&) const = default;
};

struct Transfer {
  std::string from;
  std::string to;
  bool operator==(const Transfer&) const = default;
};

// (memory >= 4096), (arch = x86_64 aarch64), (tags != slow): a relation that a job's nodes must
// satisfy. The allocator says what it means there; here its shape is checked.
struct Condition {
  std::string attribute;  // resource, arch, os, node, memory, clock or tags
  Operator op = Operator::kEqual;
  std::vector<std::string> values;  // one or more; one whole number for memory and clock
};

enum class StartType { kStrictBarrier, kLooseBarrier, kNoBarrier };
enum class CommsType { kBlockingJoin, kIndependent };

// A part's place in a multi-request.
struct Part {
  std::string contact;  // resourceManagerContact
  std::string label;    // unique; "subjob N", N from 0, if not given
  StartType start = StartType::kStrictBarrier;
  CommsType comms = CommsType::kBlockingJoin;
};

// What a request asks for.
enum class Use { kNewJob, kRestart, kStdioUpdate };

struct JobDescription {
  Use use = Use::kNewJob;
  Position where;

  std::string executable;
  std::vector<std::string> arguments;
  std::string directory;                         // empty: the account's home
  std::vector<EnvironmentVariable> environment;  // library_path is in it as LD_LIBRARY_PATH
  std::vector<std::string> library_path;
  std::optional<unsigned> umask;
  std::string standard_input;                // empty: not given, so /dev/null
  std::vector<Destination> standard_output;  // empty: not given, so kept by the site and streamed
  std::vector<Destination> standard_error;
  std::optional<std::int64_t> standard_output_position;  // bytes that the receivers have already
  std::optional<std::int64_t> standard_error_position;

  JobType job_type = JobType::kMultiple;
  std::string mpi_type;  // mpich or openmpi; empty: the site's choice
  std::int64_t count = 1;
  std::optional<std::int64_t> host_count;
  std::vector<Condition> conditions;          // of the nodes; all must hold
  bool is_exclusive = false;                  // no other job on the nodes
  std::optional<std::int64_t> min_memory_mb;  // of one process
  std::optional<std::int64_t> max_memory_mb;

  std::string queue;
  std::string project;
  std::string username;
  std::optional<std::int64_t> max_time_minutes;
  std::optional<std::int64_t> max_wall_time_minutes;
  std::optional<std::int64_t> max_cpu_time_minutes;
  bool is_dry_run = false;
  std::optional<Array> array;  // so many jobs of this description
  std::vector<std::string> after;      // jobs that must have ended well before it starts
  std::vector<std::string> after_any;  // jobs that must have ended
  bool is_held = false;                // until its user lets it go

  // Understood and checked; whether it is carried out is Unsupported()'s to say.
  std::vector<Transfer> file_stage_in;
  std::vector<Transfer> file_stage_in_shared;
  std::vector<Transfer> file_stage_out;
  std::vector<std::string> file_clean_up;
  std::string scratch_dir;
  std::string gass_cache;
  std::string remote_io_url;
  std::string restart_contact;
  std::optional<std::int64_t> two_phase_seconds;
  std::int64_t expiration_seconds = 14400;
  bool is_state_saved = true;

  std::optional<Part> part;  // of a multi-request

  // Every attribute as it was given, in the text's order.
  struct Given {
    const Attribute* attribute;
    Position where;
  };
  std::vector<Given> given;

  bool Has(std::string_view attribute) const;
  // Of the attribute, or of the job if it was not given.
  Position WhereIs(std::string_view attribute) const;
  // The shorter of max_wall_time and max_time.
  std::optional<std::int64_t> WallTimeMinutes() const;
  // How many processes the site starts itself: 1 for single, else `count`.
  std::int64_t Processes() const { return job_type == JobType::kSingle ? 1 : count; }
};

// One job of an evaluated `&` request, or of one part of a `+`.  `use` is kNewJob (kRestart is seen
// by the attribute `restart`) or kStdioUpdate.
Result<JobDescription> Describe(const Spec& evaluated, Use use = Use::kNewJob);

// The parts of an evaluated `+` request, labelled; an `&` request is its own only part, without a
// Part.
Result<std::vector<JobDescription>> DescribeParts(const Spec& evaluated);

// Parse, evaluate, describe.
Result<JobDescription> ParseAndDescribe(std::string_view text, const Variables& variables,
                                        Use use = Use::kNewJob);
Result<std::vector<JobDescription>> ParseAndDescribeParts(std::string_view text,
                                                          const Variables& variables);

// The parts of an unevaluated request as requests of their own, in order: the substitutions around
// a part are put at its front.  Print() of one is its canonical text.
Result<std::vector<Spec>> SplitParts(const Spec& spec);

// What is asked for but not carried out (yet), one error each: the servers refuse these.
std::vector<Error> Unsupported(const JobDescription& job);

// What the servers say to a restart where a new job is submitted.
Error NotASubmission(const JobDescription& restart);

}  // namespace sekisho::rsl
