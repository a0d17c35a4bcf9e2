// SPDX-License-Identifier: Apache-2.0
// sekisho run: a job from submission to its exit code; with globusrun's options and words.
#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "client/job/bad_rsl.h"
#include "client/job/commit.h"
#include "client/job/delegate.h"
#include "client/job/feed_input.h"
#include "client/job/follow.h"
#include "client/job/job_files.h"
#include "client/job/job_options.h"
#include "client/job/one_part.h"
#include "client/job/restart.h"
#include "client/job/staged_files.h"
#include "client/job/submitted.h"
#include "client/job/text_file.h"
#include "client/job/upload.h"
#include "client/job/wait_notice.h"
#include "client/site/any_site.h"
#include "client/site/exit_code.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "client/verbs/verb_many.h"
#include "client/verbs/verbs.h"
#include "common/job_state.h"
#include "common/version.h"
#include "rsl/check.h"
#include "rsl/outgoing.h"

namespace sekisho::client {
namespace {

struct RunOptions {
  std::string resource, where, file, many, rsl, kill, status, refresh, stop_manager, request_id;
  bool is_globusrun = false;
  bool batch = false, fast_batch = false, quiet = false, parse = false, dry_run = false;
  bool authenticate_only = false, no_interrupt = false, jobmanager_version = false, dump_rsl = false;
  bool output_enable = false, server = false, write_allow = false;
  bool no_input = false, verbose = false, why = false;
  DelegateOptions delegate;
  int reattach_within = 300;
  JobOptions job;
};

absl::Status NotSupported(const std::string& option, const std::string& instead) {
  return Refuse(absl::StatusCode::kInvalidArgument, 1, option + " is not supported", "use " + instead);
}

// The options whose parts of globusrun have no counterpart here.
absl::Status CheckOptions(const RunOptions& options) {
  if (!options.stop_manager.empty()) {
    return NotSupported("-stop-manager", "sekisho cancel JOB; jobmanagers stop by themselves");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> RslOf(const RunOptions& options, const CLI::App& verb, const Invocation& invocation) {
  const int sources = (options.file.empty() ? 0 : 1) + (options.rsl.empty() ? 0 : 1) +
                      (invocation.has_command ? 1 : 0);
  if (sources > 1) {
    return absl::InvalidArgumentError("give one of: RSL, --file, or -- and a command");
  }
  if (invocation.has_command || sources == 0) {
    JobOptions job = options.job;
    job.command = invocation.command;
    return ToRsl(job);
  }
  RETURN_IF_ERROR(CheckNoneBesideRsl(verb));
  if (options.file.empty()) {
    return options.rsl;
  }
  return ReadTextFile(options.file);
}

void PrintState(proto::JobState state) {
  fmt::print("GLOBUS_GRAM_PROTOCOL_JOB_STATE_{}\n", StateName(state == proto::CANCELLED ? proto::FAILED : state));
  std::fflush(stdout);
}

// The state an event leads to, for globusrun's state lines; UNKNOWN if it changes none.
proto::JobState StateAfter(const proto::JobEvent& event) {
  switch (event.kind_case()) {
    case proto::JobEvent::kQueued:
    case proto::JobEvent::kStagedIn: return proto::PENDING;
    case proto::JobEvent::kStagingIn: return proto::STAGE_IN;
    case proto::JobEvent::kTaskStarted: return event.task_started().task() == 0 ? proto::ACTIVE : proto::UNKNOWN;
    case proto::JobEvent::kBegun: return proto::ACTIVE;
    case proto::JobEvent::kSuspended: return proto::SUSPENDED;
    case proto::JobEvent::kResumed: return proto::ACTIVE;
    case proto::JobEvent::kEnded: return event.ended().state();
    default: return proto::UNKNOWN;
  }
}

std::string JobContact(const Target& target, const std::string& id) {
  return fmt::format("https://{}/{}/", target.contact.Address(), id);
}

proto::RequestBody SubmitBody(const RunOptions& options, const std::string& rsl, bool has_input,
                              const ClientFiles& files) {
  proto::RequestBody body;
  *body.mutable_submit()->mutable_file() = files;
  body.set_request_id(options.request_id.empty() ? NewRequestId() : options.request_id);
  body.mutable_submit()->set_rsl(rsl);
  body.mutable_submit()->set_has_input(has_input);
  body.mutable_submit()->set_dry_run(options.dry_run);
  body.mutable_submit()->set_awaits_credential(options.delegate.what() != Delegation::kNone);
  return body;
}

// -F: submit and leave; also a dry run.
awaitable<int> SubmitOnly(Session& session, const RunOptions& options, const std::string& rsl, absl::Status& refusal) {
  const Delegation delegation = options.delegate.what();
  auto files = PrepareJob(session, rsl, delegation);
  if (!files.ok()) {
    co_return Report(files.status());
  }
  const proto::RequestBody body = SubmitBody(options, rsl, false, *files);
  const std::string& request_id = body.request_id();
  const auto request = session.Sign(body);
  if (!request.ok()) {
    co_return Report(request.status());
  }
  const auto reply = co_await SendSubmission(session, *request, request_id);
  if (!reply.ok() && IsRefusal(reply.status())) {
    refusal = reply.status();
    co_return 0;
  }
  if (!reply.ok()) {
    co_return Report(reply.status());
  }
  if (reply->dry_run()) {
    fmt::print("Dryrun successful\n");
  } else {
    fmt::print("{}\n", JobContact(session.target(), reply->job_id()));
    if (!options.quiet) {
      fmt::print(stderr, "GRAM Job submission successful\n");
    }
  }
  std::fflush(stdout);
  PrintWarnings(*reply);
  Awaited awaited{true, delegation, *std::move(files), options.quiet};
  co_return co_await GiveWhatItAwaits(session, *reply, request_id, std::move(awaited));
}

// What brings the job that is followed what it waits for.  If that goes wrong it is said, and the job is cancelled.
struct Helpers {
  explicit Helpers(Loop& loop) : changed(loop) {}
  int running = 0;
  int code = 0;  // of what went wrong
  Signal changed;
};
constexpr std::chrono::seconds kHelpersLast{10};  // of a job that is over

awaitable<int> RunJob(Session& session, const RunOptions& options, const std::string& rsl, absl::Status& refusal) {
  const bool is_batch = options.batch;
  const bool has_input = !options.no_input && !is_batch && HasInput();
  const Delegation delegation = options.delegate.what();
  auto files = PrepareJob(session, rsl, delegation);
  if (!files.ok()) {
    co_return Report(files.status());
  }
  const proto::RequestBody body = SubmitBody(options, rsl, has_input, *files);
  const auto request = session.Sign(body);
  if (!request.ok()) {
    co_return Report(request.status());
  }
  FollowOptions follow;
  follow.submission = *request;
  follow.request_id = body.request_id();
  follow.wanted.set_events(true);
  follow.wanted.set_output(true);
  follow.wanted.set_follow(true);
  follow.patience = std::chrono::seconds(options.reattach_within);
  follow.feeds_input = has_input;
  if (const rsl::CheckReport checked = rsl::Check(rsl); checked.jobs.size() == 1) {
    follow.shown = rsl::ShownAs(checked.jobs[0]);
  }
  follow.cancels_on_interrupt = !options.no_interrupt;
  std::string job_name;
  bool is_running = false, is_accepted = false, awaits_commit = false, has_state = false;
  bool awaits_files = !files->empty() || delegation != Delegation::kNone;
  const bool says_why_it_waits = !options.quiet && !options.verbose && !options.is_globusrun && !is_batch;
  WaitNotice notice(session.loop(), follow.cancels_on_interrupt);
  const auto helpers = std::make_shared<Helpers>(session.loop());
  const auto run_beside = [&session, helpers](awaitable<int> helper) {
    ++helpers->running;
    co_spawn(session.loop(), std::move(helper), [helpers](const std::exception_ptr& thrown, int code) {
      Vital("sending files and credentials")(thrown);
      --helpers->running;
      helpers->code = code != 0 ? code : helpers->code;
      helpers->changed.Notify();
    });
  };
  follow.on_submitted = [&](const proto::SubmitReply& reply) {
    is_accepted = true;
    notice.OnSubmitted(reply);
    if (is_batch) {
      fmt::print("{}\n", JobContact(session.target(), reply.job_id()));
      std::fflush(stdout);
    }
    if ((options.is_globusrun || is_batch) && !options.quiet) {
      fmt::print(stderr, "GRAM Job submission successful\n");
    }
    if (options.verbose) {
      fmt::print(stderr, "sekisho: submitted {} as {}\n",
                 JobName(session.target(), reply.site(), reply.job_id()), Harmless(reply.account()));
    }
    job_name = JobName(session.target(), reply.site(), reply.job_id());
    PrintWarnings(reply);
    if (delegation != Delegation::kNone) {
      run_beside(DelegateOrCancel(session, reply, follow.request_id, delegation, {follow.patience}));
    }
    if (!files->empty()) {
      const auto bar = std::make_shared<TransferBar>(!options.quiet);
      const UploadOptions upload{.patience = follow.patience, .bar = bar};
      run_beside(UploadOrCancel(session, reply.job_id(), *files, upload));
    }
    if (reply.commit_within_s() > 0) {
      awaits_commit = true;
      co_spawn(session.loop(),
               CommitOrSay(session, reply.job_id(), {std::chrono::seconds(reply.commit_within_s())}),
               Vital("the commit"));
    }
  };
  follow.on_event = [&](const proto::JobEvent& event) {
    const proto::JobState state = StateAfter(event);
    if (state != proto::UNKNOWN && options.is_globusrun && !options.quiet) {
      PrintState(state);
    }
    if (says_why_it_waits) {
      notice.OnEvent(event);
    }
    if (event.has_credential_ending() && !options.quiet) {
      fmt::print(stderr, "sekisho: {}\n", EndingText(job_name, event.credential_ending().until_ms(), NowMs()));
    }
    if (options.verbose && event.has_waiting()) {
      fmt::print(stderr, "sekisho: waits: {}\n", Harmless(event.waiting().reason()));
    }
    // -b: exit once PENDING, ACTIVE or an end is seen, and it may go on without us.
    has_state = has_state || state != proto::UNKNOWN;
    awaits_commit = awaits_commit && !event.has_committed() && !event.has_ended();
    awaits_files = awaits_files && !event.has_staged_in() && !event.has_ended();
    if (is_batch && has_state && !awaits_commit && !awaits_files) {
      is_running = true;
    }
    return !is_running;
  };
  const auto followed = co_await Follow(session, follow);
  if (is_batch && is_running) {
    co_return 0;
  }
  if (!followed.ok() && !is_accepted && IsRefusal(followed.status())) {
    refusal = followed.status();
    co_return 0;
  }
  if (!followed.ok()) {
    co_return Report(followed.status());
  }
  if (followed->was_left) {
    const std::string& name = followed->name;
    fmt::print(stderr, "{}\n",
               name.empty() ? "sekisho: left before the site answered; sekisho list shows whether it took the job"
                            : fmt::format("sekisho: left; {} goes on: sekisho status {}", name, name));
    co_return kExitCancelled;
  }
  if (!followed->was_interrupted || followed->job.state() == proto::DONE) {
    std::cerr << EndText(followed->job);
  }
  if (followed->job.staged_out_size() > 0) {
    const DownloadOptions download{.patience = follow.patience, .is_quiet = options.quiet};
    const absl::Status fetched = co_await FetchStagedOut(session, followed->job, rsl, download);
    if (!fetched.ok()) {
      fmt::print(stderr, "sekisho: its files are kept at the site: sekisho get {}\n", followed->name);
      co_return ReportFetch(fetched);
    }
  }
  if (followed->job.has_array() && !options.quiet) {
    fmt::print(stderr, "sekisho: its output: sekisho output {0}, or of one element: sekisho output '{0}[INDEX]'\n",
               followed->name);
  }
  const bool is_cancelled = followed->job.state() == proto::CANCELLED;
  for (bool has_moved = true; is_cancelled && helpers->running > 0 && has_moved;) {
    has_moved = co_await helpers->changed.WaitFor(kHelpersLast);
  }
  if (is_cancelled && !followed->was_interrupted && helpers->code != 0) {
    co_return helpers->code;
  }
  co_return followed->was_interrupted && is_cancelled ? kExitCancelled : ExitCodeOf(followed->job);
}

awaitable<int> Authenticate(Session& session) {
  const auto reply =
      co_await session.Call<proto::SiteRequest, proto::SiteInfo>(&Session::Async::Site, proto::SiteRequest());
  // Authenticated and mapped, whatever the inside says.
  if (!reply.ok() && ExitCodeOf(reply.status()) == kExitRefused) {
    co_return Report(reply.status());
  }
  fmt::print("GRAM Authentication test successful\n");
  co_return 0;
}

awaitable<int> Versions(Session& session) {
  const auto reply =
      co_await session.Call<proto::SiteRequest, proto::SiteInfo>(&Session::Async::Site, proto::SiteRequest());
  if (!reply.ok()) {
    co_return Report(reply.status());
  }
  fmt::print("sekisho {}\njobmanager of {}: {}\n", kVersion, Harmless(reply->site()), Harmless(reply->version()));
  co_return 0;
}

awaitable<int> PrintStatus(Session& session, const std::string& id) {
  proto::StatusRequest request;
  request.add_job_id(id);
  const auto reply = co_await session.Call<proto::StatusRequest, proto::StatusReply>(&Session::Async::Status, request);
  if (!reply.ok()) {
    co_return Report(reply.status());
  }
  const proto::JobState state = reply->job_size() > 0 ? reply->job(0).state() : proto::UNKNOWN;
  fmt::print("{}\n", StateName(state));
  co_return state == proto::UNKNOWN ? kExitUnknown : 0;
}

awaitable<int> Kill(Session& session, const std::string& id) {
  const auto reply = co_await Cancel(session, id);
  co_return reply.ok() ? 0 : Report(reply.status());
}

int RunMany(const RunOptions& options, const CLI::App& verb, const Invocation& invocation) {
  const absl::Status alone = StandsAlone(verb, invocation, {"--resource", "--request-id", "--quiet", "--reattach-within", "--no-input",
                                                            "--output-enable", "--server"});
  if (!alone.ok()) {
    return Report(alone);
  }
  return RunManyVerb({.path = options.many,
                      .resource = options.resource,
                      .request_id = options.request_id,
                      .is_quiet = options.quiet,
                      .waits = true,
                      .patience = std::chrono::seconds(options.reattach_within)});
}

int RunVerb(RunOptions options, const CLI::App& verb, const Invocation& invocation) {
  if (const auto status = CheckOptions(options); !status.ok()) {
    return Report(status);
  }
  if (!options.kill.empty()) {
    return WithJob(options.kill, Kill);
  }
  if (!options.refresh.empty()) {
    return WithJob(options.refresh, [&](Session& session, const std::string& id) {
      return RefreshCredential(session, id, {.is_full = options.delegate.is_full});
    });
  }
  if (!options.status.empty()) {
    return WithJob(options.status, PrintStatus);
  }
  if (options.resource.empty() && (options.authenticate_only || options.jobmanager_version)) {
    return Report(NoPlace());
  }
  if (options.authenticate_only) {
    return WithSite(options.resource, Authenticate);
  }
  if (options.jobmanager_version) {
    return WithSite(options.resource, Versions);
  }

  if (!options.many.empty()) {
    return RunMany(options, verb, invocation);
  }

  // Checked here, before anything is sent.
  auto rsl = RslOf(options, verb, invocation);
  if (!rsl.ok()) {
    return Report(options.resource.empty() && !options.parse && !options.dump_rsl ? NoPlace() : rsl.status());
  }
  const rsl::CheckReport checked = rsl::Check(*rsl);
  if (checked.error) {
    return Report(BadRsl(*checked.error));
  }
  if (IsRestart(checked) && !options.parse && !options.dump_rsl) {
    return Restart(*rsl, {.resource = options.resource,
                          .has_options_of_new_jobs = options.dry_run || !options.request_id.empty(),
                          .delegation = options.delegate.what(),
                          .follows = !options.batch && !options.fast_batch,
                          .cancels_on_interrupt = !options.no_interrupt,
                          .is_quiet = options.quiet,
                          .patience = std::chrono::seconds(options.reattach_within)});
  }
  const bool is_dry_run =
      options.dry_run || std::any_of(checked.jobs.begin(), checked.jobs.end(),
                                     [](const rsl::JobDescription& job) { return job.is_dry_run; });
  if (options.parse) {
    fmt::print("\nRSL Parsed Successfully...\n\n");
    return 0;
  }
  if (options.dump_rsl) {
    fmt::print("{}\n", *rsl);
    return 0;
  }
  options.no_input |= checked.jobs.size() == 1 && checked.jobs[0].array;
  PlaceOptions place{options.resource, options.where, options.why, options.quiet};
  if (place.resource.empty()) {
    const auto part = OnlyPart(*rsl);
    if (!part) {
      return Report(NoPlace());
    }
    place.resource = part->contact;
    rsl = part->rsl;
  }
  return WithPlace(place, checked.jobs, [&](Session& session, absl::Status& refusal) {
    return options.fast_batch || is_dry_run ? SubmitOnly(session, options, *rsl, refusal)
                                            : RunJob(session, options, *rsl, refusal);
  });
}

void AddVerb(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& help) {
  auto* verb = app.add_subcommand(name, help);
  auto options = std::make_shared<RunOptions>();
  options->is_globusrun = name == "globusrun";
  verb->add_option("-r,--resource", options->resource,
                   "Site name or contact, host[:port][/service][:subject]; any: the best that the directory knows");
  verb->add_option("--where", options->where, "With -r any: only sites that meet this, e.g. 'out && freeslots>=8'");
  verb->add_flag("--why", options->why, "With -r any: say how the site was chosen, on stderr");
  verb->add_option("RSL", options->rsl, "What to run, in RSL; or write: -- COMMAND ARGUMENTS...");
  verb->add_option("-f,--file", options->file, "Read the RSL from this file");
  verb->add_option("--many", options->many, "Run each line of this file, an RSL each, and wait for all; -: standard input");
  verb->add_flag("-b,--batch", options->batch, "Print the job contact, leave once the job is queued or runs");
  verb->add_flag("-F,--fast-batch", options->fast_batch, "Print the job contact, leave once it is accepted");
  verb->add_flag("-d,--dry-run", options->dry_run, "Do everything but submit");
  verb->add_flag("-p,--parse", options->parse, "Only check the RSL; needs no credential");
  verb->add_flag("-a,--authenticate-only", options->authenticate_only, "Only authenticate");
  verb->add_option("-k,--kill", options->kill, "Cancel this job")->type_name("JOB");
  verb->add_option("--status", options->status, "Print this job's state")->type_name("JOB");
  verb->add_flag("-n,--no-interrupt", options->no_interrupt, "Ctrl-C leaves the job alone");
  verb->add_flag("-q,--quiet", options->quiet, "Print no messages, only output");
  verb->add_flag("-o,--output-enable", options->output_enable, "Stream output (always done)");
  verb->add_flag("-s,--server", options->server, "Files of this machine can be staged (always so)");
  verb->add_flag("-w,--write-allow", options->write_allow, "The job may write to the files of this machine that its RSL names (always so)");
  verb->add_option("-y,--refresh-proxy", options->refresh, "Give this job a new credential, as `sekisho proxy refresh`")
      ->type_name("JOB");
  AddDelegateOptions(*verb, options->delegate);
  verb->add_option("--stop-manager", options->stop_manager, "Not supported: see the message")->type_name("JOB");
  verb->add_flag("--jobmanager-version", options->jobmanager_version, "Print both versions (-j)");
  verb->add_option("--request-id", options->request_id, "The same id again makes no second job");
  verb->add_option("--reattach-within", options->reattach_within,
                   "Seconds to come back to the job within when the connection is lost")
      ->check(CLI::Range(1, 86400));
  verb->add_flag("--no-input", options->no_input, "Do not pass standard input on");
  verb->add_flag("--dump-rsl", options->dump_rsl, "Print the RSL instead of submitting it");
  verb->add_flag("-v,--verbose", options->verbose, "Say what happens, on stderr");
  AddJobOptions(*verb, options->job);
  verb->callback([options, verb, &invocation] { invocation.exit_code = RunVerb(*options, *verb, invocation); });
}

}  // namespace

void AddRunVerb(CLI::App& app, Invocation& invocation) {
  AddVerb(app, invocation, "run", "Run a job at a site: live output, its exit code");
  AddVerb(app, invocation, "globusrun", "Like run, with globusrun's state lines");
}

}  // namespace sekisho::client
