// SPDX-License-Identifier: Apache-2.0
// sekisho mpirun: one MPI program over the sites of a machine file, as one MPI_COMM_WORLD.
#include <map>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "client/job/feed_input.h"
#include "client/job/text_file.h"
#include "client/ranges.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "client/verbs/verbs.h"
#include "client/world/build.h"
#include "client/world/mpirun_options.h"
#include "client/world/part_choices.h"
#include "client/world/profiled_order.h"
#include "client/world/rank_order.h"
#include "client/world/world_plan.h"
#include "client/world/world_run.h"
#include "client/world/world_sites.h"
#include "client/world/written_world.h"

namespace sekisho::client {
namespace {

constexpr int kReadyWithin = 300;  // seconds
constexpr int kHeldFor = 3600;

// --build, at each site once.  `program` is then each part's own.
awaitable<int> BuildAtSites(const WorldSites& sites, MpirunOptions options, std::string program,
                            std::vector<RankRange>& ranges) {
  const auto sources = Sources::Pack(options.sources, program);
  if (!sources.ok()) {
    co_return Report(sources.status());
  }
  std::map<std::string, Build> builds;  // by site
  for (RankRange& range : ranges) {
    const WorldSite& site = sites.at(range.contact);
    const auto [found, is_new] = builds.try_emplace(
        site.info.site(), Build{options.build, sources->archive(), sources->sum(), ""});
    Build& build = found->second;
    if (is_new) {
      const auto architecture = ArchitectureOf(site.info);
      if (!architecture.ok()) {
        co_return Report(architecture.status());
      }
      build.architecture = *architecture;
      const int code = co_await BuildAtSite(*site.session, build);
      if (code != 0) {
        fmt::print(stderr, "sekisho: not built at {}: {}\n", Harmless(site.info.site()), options.build);
        co_return code;
      }
    }
    range.program = PlaceOf(build) + "/" + program;
  }
  co_return 0;
}

absl::StatusOr<std::vector<WorldPart>> WorldParts(const WorldSites& sites, const std::vector<RankRange>& ranges, const JobOptions& job,
                                                  const std::vector<std::string>& written) {
  std::vector<WorldPart> parts;
  for (const RankRange& range : ranges) {
    const WorldSite& site = sites.at(range.contact);
    std::string rsl;
    if (written.empty()) {
      ASSIGN_OR_RETURN(rsl, PartRsl(job, range));
    } else {
      rsl = written[parts.size()];
    }
    ASSIGN_OR_RETURN(ClientFiles files, SumStagedFiles(rsl));
    parts.push_back({range, site.session, site.info.site(), rsl, std::move(files), StartTypeOf(range.start_type)});
  }
  return parts;
}

// `written`: the parts' RSL, if the user has written it; else it is made of `job`.
awaitable<int> Mpirun(WorldSites sites, std::vector<RankRange> ranges, JobOptions job,
                      MpirunOptions options, PartChoices choices, std::vector<std::string> written) {
  WorldOptions world;
  if (options.build.empty() && options.rankmap != kRankmapAuto) {
    world.prepared = PrepareLeader(*sites.at(ranges.front().contact).session);
  }
  std::string unreached;
  const absl::Status asked = co_await AskSites(sites, unreached);
  if (!asked.ok()) {
    fmt::print(stderr, "sekisho: {}:\n", unreached);
    co_return Report(asked);
  }
  if (const std::string versions = DifferentVersions(sites); !versions.empty()) {
    fmt::print(stderr,
               "sekisho: warning: the sites run different versions: {}\n"
               "  -> if ranks do not start or do not meet, that may be why\n",
               Harmless(versions));
  }
  if (options.ranks == "auto") {
    auto free = FreeParts(sites, ranges);
    if (!free.ok()) {
      co_return Report(free.status());
    }
    ranges = *std::move(free);
  }
  if (const absl::Status applied = ApplyChoices(choices, ranges); !applied.ok()) {
    co_return Report(applied);
  }
  const auto relay = MeetingPlace(sites, ranges, options.hold);
  if (!relay.ok()) {
    co_return Report(relay.status());
  }
  if (options.encrypt) {
    auto speakers = SpeakersOf(sites);
    if (!speakers.ok()) {
      co_return Report(speakers.status());
    }
    world.encrypts = true;
    world.speakers = *std::move(speakers);
  }
  if (!options.build.empty()) {
    const int code = co_await BuildAtSites(sites, options, job.command[0], ranges);
    if (code != 0) {
      co_return code;
    }
  }
  world.relay = relay->relay.address();
  world.relay_site = relay->site;
  world.feeds_input = !options.no_input && !options.batch && !options.hold && HasInput();
  world.tags_output = options.tag_output;
  world.is_batch = options.batch;
  world.is_held = options.hold;
  world.is_verbose = options.verbose;
  world.ready_within =
      std::chrono::seconds(options.ready_within.value_or(options.hold ? kHeldFor : kReadyWithin));
  if (options.rankmap == kRankmapAuto) {
    auto profiled = WorldParts(sites, ranges, ProfiledJob(job, options), {});
    if (!profiled.ok()) {
      co_return Report(profiled.status());
    }
    const ProfiledOrder order = co_await OrderByProfile(*std::move(profiled), world);
    if (order.exit_code != 0) {
      co_return order.exit_code;
    }
    if (!order.rank_of_slot.empty()) {
      ApplyRankOrder(order.rank_of_slot, ranges);
    }
  }
  auto parts = WorldParts(sites, ranges, job, written);
  if (!parts.ok()) {
    co_return Report(parts.status());
  }
  co_return co_await RunWorld(*std::move(parts), std::move(world));
}

// A file says it all: -globusrsl.
int RunWritten(const MpirunOptions& options, const Invocation& invocation) {
  if (!options.ranks.empty() || !options.machine_file.empty() || invocation.has_command || !options.exports.empty() ||
      !options.mpi.empty() || !options.directory.empty() || !options.profile.empty() || options.max_wall_time ||
      !options.per_site_exe.empty() || !options.start_type.empty() || !options.stage_in.empty() || options.stage_exe ||
      !options.build.empty()) {
    return Report(absl::InvalidArgumentError(
        "-globusrsl: the file says what runs, where, how often and how: give no program, and of options only --rankmap, "
        "--hold, --encrypt, --tag-output, --batch, --ready-within, --no-input, -dumprsl and -v"));
  }
  const auto text = ReadTextFile(options.written);
  if (!text.ok()) {
    return Report(text.status());
  }
  const auto parts = ParseWrittenWorld(*text, options.written);
  if (!parts.ok()) {
    return Report(parts.status());
  }
  std::vector<RankRange> ranges;
  std::vector<std::string> written;
  for (const WrittenPart& part : *parts) {
    ranges.push_back(part.ranks);
    written.push_back(part.rsl);
  }
  if (const absl::Status ordered = OrderRanks(options, ranges); !ordered.ok()) {
    return Report(ordered);
  }
  if (options.dump_rsl) {
    fmt::print("{}", *text);
    return 0;
  }
  Loop& loop = NewLoop();
  auto sites = OpenSites(loop, ranges);
  if (!sites.ok()) {
    return Report(sites.status());
  }
  return RunOnLoop(loop, Mpirun(*std::move(sites), ranges, {}, options, {}, written));
}

int MpirunVerb(const MpirunOptions& options, const Invocation& invocation) {
  if (!options.written.empty()) {
    return RunWritten(options, invocation);
  }
  const auto ranks = RanksOf(options.ranks);
  if (!ranks.ok()) {
    return Report(ranks.status());
  }
  auto ranges = PartsOf(options, *ranks);
  if (!ranges.ok()) {
    return Report(ranges.status());
  }
  const auto choices = ParsePartChoices(options.per_site_exe, options.start_type);
  if (!choices.ok()) {
    return Report(choices.status());
  }
  const auto job = JobOf(options, invocation.command);
  if (!job.ok()) {
    return Report(job.status());
  }
  if (const absl::Status ordered = OrderRanks(options, *ranges); !ordered.ok()) {
    return Report(ordered);
  }
  if (options.dump_rsl) {
    if (const absl::Status applied = ApplyChoices(*choices, *ranges); !applied.ok()) {
      return Report(applied);
    }
  }
  const auto rsl = MultiRequestRsl(*job, *ranges);
  if (!rsl.ok()) {
    return Report(rsl.status());
  }
  if (options.dump_rsl) {
    fmt::print("{}", *rsl);
    return 0;
  }
  const auto placed = PlaceAnyParts(*ranges, *job, options.any);
  if (!placed.ok()) {
    return Report(placed.status());
  }
  Loop& loop = NewLoop();
  auto sites = OpenSites(loop, *placed);
  if (!sites.ok()) {
    return Report(sites.status());
  }
  return RunOnLoop(loop, Mpirun(*std::move(sites), *placed, *job, options, *choices, {}));
}

}  // namespace

void AddMpirunVerb(CLI::App& app, Invocation& invocation) {
  auto* verb = app.add_subcommand("mpirun",
                                  "Run one MPI program over several sites: sekisho mpirun -np N "
                                  "[OPTIONS] PROGRAM ARGUMENTS...");
  auto options = std::make_shared<MpirunOptions>();
  verb->add_option("-n,--np", options->ranks, "How many ranks (-np); auto: as many as are free now");
  verb->add_option("--machinefile", options->machine_file,
                   "Lines \"SITE\" COUNT, filled in order (-machinefile; default ./machines)");
  verb->add_option("--where", options->any.where, "Conditions on the sites that lines of \"any\" may go to");
  verb->add_flag("--why", options->any.says_why, "Say how they were chosen");
  verb->add_option("--per-site-exe", options->per_site_exe, "SITE=PATH: the program there; may be repeated")
      ->allow_extra_args(false);
  verb->add_option("--build", options->build,
                   "A command that makes the program of the sources at each site, e.g. 'make app'; once for each content");
  verb->add_option("--sources", options->sources, "The folder that --build sends (default: this one)");
  verb->add_flag("--stage-exe", options->stage_exe, "The program is a file of this machine: send it to the sites");
  verb->add_option("--stage-in", options->stage_in, "LOCAL[=REMOTE]: a file of this machine that ranks read there")
      ->allow_extra_args(false);
  verb->add_option("--start-type", options->start_type,
                   "[SITE=]strict-barrier, loose-barrier or no-barrier: whether the others run without it")
      ->allow_extra_args(false);
  verb->add_option("-x,--export", options->exports,
                   "NAME or NAME=VALUE for every rank; may be repeated")
      ->allow_extra_args(false);
  verb->add_option("--mpi", options->mpi, "What the program was built with")
      ->check(CLI::IsMember({"mpich", "openmpi", "auto"}));
  verb->add_option("--directory", options->directory, "Working directory at the sites");
  verb->add_option("--profile", options->profile,
                   "Count who sends how much to whom, into this file where rank 0 runs: a pattern for rankmap");
  verb->add_option("--profile-seconds", options->profile_seconds, "Counting ends after so long, and the short run of --rankmap auto (10)")
      ->check(CLI::Range(0.001, 1e6));
  verb->add_option("--profile-iterations", options->profile_iterations,
                   "Counting ends once the program has called MPI_Pcontrol(2) so often")
      ->check(kPositive);
  verb->add_option("--rankmap", options->rankmap,
                   "A placement: line i is rank i's slot, its place in the machine file's order; auto: the best order, by a short run");
  verb->add_option("--globusrsl", options->written, "A multi-request in place of options and a program (-globusrsl)");
  verb->add_option("--max-wall-time", options->max_wall_time, "Minutes")
      ->check(kPositive);
  verb->add_option("--ready-within", options->ready_within,
                   "Seconds within which all ranks must stand ready, or nothing runs (300; 3600 with --hold)")
      ->check(CLI::Range(1, 7 * 86400));
  verb->add_flag("--dump-rsl", options->dump_rsl,
                 "Print the multi-request and run nothing (-dumprsl)");
  verb->add_flag("--tag-output", options->tag_output, "Each line with its rank and site");
  verb->add_flag("--encrypt", options->encrypt,
                 "What passes a relay is encrypted between the ranks; sites.json must name the sites' queue servers");
  verb->add_flag("--batch", options->batch, "Print the parts' names and leave");
  verb->add_flag("--hold", options->hold,
                 "Print the name of the program's world and leave; it runs once `sekisho coalloc release` says so");
  verb->add_flag("--no-input", options->no_input, "Do not pass standard input to rank 0");
  verb->add_flag("-v,--verbose", options->verbose, "Say what happens, on stderr");
  verb->callback(
      [options, &invocation] { invocation.exit_code = MpirunVerb(*options, invocation); });
}

}  // namespace sekisho::client
