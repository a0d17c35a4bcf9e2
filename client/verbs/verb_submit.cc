// SPDX-License-Identifier: Apache-2.0
// sekisho submit: RSL, a command, or a batch script with #SEKISHO lines; prints the job's name, no more.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/job/bad_rsl.h"
#include "client/job/delegate.h"
#include "client/job/job_options.h"
#include "client/job/one_part.h"
#include "client/job/restart.h"
#include "client/job/submitted.h"
#include "client/job/text_file.h"
#include "client/site/any_site.h"
#include "client/site/saved_request.h"
#include "client/site/site_call.h"
#include "client/verbs/verb_many.h"
#include "client/verbs/verbs.h"
#include "common/refusal.h"
#include "rsl/check.h"

namespace sekisho::client {
namespace {

struct SubmitOptions {
  std::string resource, file, many, request_id, save_request;
  std::vector<std::string> positional;  // RSL, or a script and its arguments
  std::string where;
  bool is_json = false, dry_run = false, why = false, no_commit = false;
  JobOptions job;
  DelegateOptions delegate;
};

void AddSubmitOptions(CLI::App& verb, SubmitOptions& options) {
  verb.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  verb.add_option("-r,--resource", options.resource, "Site name or contact; any: the best that the directory knows");
  verb.add_option("--where", options.where, "With -r any: only sites that meet this, e.g. 'out && freeslots>=8'");
  verb.add_flag("--why", options.why, "With -r any: say how the site was chosen, on stderr");
  verb.add_option("-f,--file", options.file, "Read the RSL from this file");
  verb.add_option("--many", options.many, "Submit each line of this file, an RSL each; -: standard input");
  verb.add_option("--request-id", options.request_id, "The same id again makes no second job");
  verb.add_flag("-d,--dry-run", options.dry_run, "Do everything but submit");
  verb.add_option("--save-request", options.save_request, "Sign the request and write it to this file; submit nothing");
  verb.add_flag("--no-commit", options.no_commit,
                "Do not commit a job with two_phase: it waits for `sekisho signal JOB commit_request`");
  verb.add_flag("--json", options.is_json, "Print JSON");
  verb.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  verb.add_option("RSL_OR_SCRIPT", options.positional,
                  "RSL, or a script with #SEKISHO lines and its arguments; or write: -- COMMAND ARGUMENTS...");
  verb.positionals_at_end();
  AddDelegateOptions(verb, options.delegate);
  AddJobOptions(verb, options.job);
}

bool IsRsl(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\n");
  return first != std::string::npos && std::string("&+|(").find(text[first]) != std::string::npos;
}

// The script's own options first, so that the command line's win.
absl::StatusOr<std::string> FromScript(SubmitOptions& options, const Invocation& invocation) {
  const std::string path = options.positional[0];
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  ASSIGN_OR_RETURN(const Script script,
                   ParseScript(text, path, {options.positional.begin() + 1, options.positional.end()}));
  std::vector<std::string> arguments = script.arguments;
  arguments.insert(arguments.end(), invocation.arguments.begin(), invocation.arguments.end());
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
  SubmitOptions merged;
  CLI::App parser;
  AddSubmitOptions(parser, merged);
  try {
    parser.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return Refuse(absl::StatusCode::kInvalidArgument, 0, fmt::format("{}: #SEKISHO line: {}", path, error.what()),
                  "correct it there: such a line holds options of `sekisho submit --help`");
  }
  options = merged;
  options.job.command = script.command;
  return ToRsl(options.job);
}

absl::StatusOr<std::string> RslOf(SubmitOptions& options, const CLI::App& verb, const Invocation& invocation) {
  const int sources = (options.file.empty() ? 0 : 1) + (options.positional.empty() ? 0 : 1) +
                      (invocation.has_command ? 1 : 0);
  if (sources != 1) {
    return absl::InvalidArgumentError("give one of: RSL, a script, --file, or -- and a command");
  }
  if (invocation.has_command) {
    options.job.command = invocation.command;
    return ToRsl(options.job);
  }
  if (options.file.empty() && !IsRsl(options.positional[0])) {
    return FromScript(options, invocation);
  }
  RETURN_IF_ERROR(CheckNoneBesideRsl(verb));
  return options.file.empty() ? options.positional[0] : ReadTextFile(options.file);
}

awaitable<int> Submit(Session& session, const SubmitOptions& options, const std::string& rsl, absl::Status& refusal) {
  const Delegation delegation = options.delegate.what();
  auto files = PrepareJob(session, rsl, delegation);
  if (!files.ok()) {
    co_return Report(files.status());
  }
  proto::RequestBody body;
  *body.mutable_submit()->mutable_file() = *files;
  body.set_request_id(options.request_id.empty() ? NewRequestId() : options.request_id);
  const std::string request_id = body.request_id();
  body.mutable_submit()->set_rsl(rsl);
  body.mutable_submit()->set_dry_run(options.dry_run);
  body.mutable_submit()->set_awaits_credential(delegation != Delegation::kNone);
  const auto request = session.Sign(std::move(body));
  if (!request.ok()) {
    co_return Report(request.status());
  }
  if (!options.save_request.empty()) {
    const absl::Status saved = SaveRequest(*request, options.save_request);
    co_return saved.ok() ? 0 : Report(saved);
  }
  const auto reply = co_await SendSubmission(session, *request, request_id);
  if (!reply.ok() && IsRefusal(reply.status())) {
    refusal = reply.status();
    co_return 0;
  }
  if (!reply.ok()) {
    co_return Report(reply.status());
  }
  const std::string name = JobName(session.target(), reply->site(), reply->job_id());
  if (options.is_json) {
    fmt::print("{}\n", nlohmann::json({{"id", name},
                                       {"site", reply->site()},
                                       {"account", reply->account()},
                                       {"is_repeat", reply->is_repeat()},
                                       {"dry_run", reply->dry_run()}})
                           .dump());
  } else {
    fmt::print("{}\n", reply->dry_run() ? "Dryrun successful" : name);
  }
  std::fflush(stdout);
  PrintWarnings(*reply);
  Awaited awaited{!options.no_commit, delegation, *std::move(files), options.is_json};
  co_return co_await GiveWhatItAwaits(session, *reply, request_id, std::move(awaited));
}

int SubmitVerb(SubmitOptions options, const CLI::App& verb, const Invocation& invocation) {
  if (!options.many.empty()) {
    const absl::Status alone = StandsAlone(verb, invocation, {"--resource", "--request-id", "--json"});
    return !alone.ok() ? Report(alone)
                       : RunManyVerb({.path = options.many,
                                      .resource = options.resource,
                                      .request_id = options.request_id,
                                      .is_json = options.is_json});
  }
  auto rsl = RslOf(options, verb, invocation);
  if (!rsl.ok()) {
    return Report(rsl.status());
  }
  const rsl::CheckReport checked = rsl::Check(*rsl);
  if (checked.error) {
    return Report(BadRsl(*checked.error));
  }
  if (IsRestart(checked)) {
    const bool is_for_new = options.dry_run || !options.request_id.empty() || !options.save_request.empty();
    return Restart(*rsl, {.resource = options.resource,
                          .has_options_of_new_jobs = is_for_new,
                          .delegation = options.delegate.what()});
  }
  PlaceOptions place{options.resource, options.where, options.why};
  if (place.resource.empty()) {
    const auto part = OnlyPart(*rsl);
    if (!part) {
      return Report(NoPlace());
    }
    place.resource = part->contact;
    rsl = part->rsl;
  }
  return WithPlace(place, checked.jobs,
                   [&](Session& session, absl::Status& refusal) { return Submit(session, options, *rsl, refusal); });
}

}  // namespace

void AddSubmitVerb(CLI::App& app, Invocation& invocation) {
  auto* verb = app.add_subcommand("submit", "Submit a job, print its name and leave");
  auto options = std::make_shared<SubmitOptions>();
  AddSubmitOptions(*verb, *options);
  verb->callback([options, verb, &invocation] { invocation.exit_code = SubmitVerb(*options, *verb, invocation); });
}

}  // namespace sekisho::client
