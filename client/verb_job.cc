// SPDX-License-Identifier: Apache-2.0
// sekisho status, list, wait, output, cancel, signal: a job that exists, by its name.
#include <array>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "client/exit_code.h"
#include "client/follow.h"
#include "client/job_text.h"
#include "client/saved_request.h"
#include "client/show_links.h"
#include "client/site_call.h"
#include "client/verbs.h"
#include "common/job_state.h"

namespace sekisho::client {
namespace {

struct JobVerbOptions {
  std::vector<std::string> jobs;
  std::string resource, signal, argument, save_request;
  bool is_json = false, all = false, follow = false, links = false;
  int task = -1;
  int reattach_within = 300;
};

awaitable<absl::StatusOr<proto::JobStatus>> StatusOf(Session& session, const std::string& id) {
  proto::StatusRequest request;
  request.add_job_id(id);
  CO_ASSIGN_OR_RETURN(const auto reply, (co_await session.Call<proto::StatusRequest, proto::StatusReply>(
                                            &Session::Async::Status, request)));
  proto::JobStatus job;
  if (reply.job_size() > 0) {
    job = reply.job(0);
  }
  if (job.state() == proto::UNKNOWN) {
    job.set_job_id(id);
    if (job.site().empty()) {
      job.set_site(session.target().site);
    }
    if (job.reason().empty()) {
      job.set_reason("the site knows no such job of yours");
    }
  }
  co_return job;
}

awaitable<int> PrintStatus(Session& session, const std::string& id, bool is_json) {
  const auto job = co_await StatusOf(session, id);
  if (!job.ok()) {
    co_return Report(job.status());
  }
  if (is_json) {
    fmt::print("{}\n", ToJson(*job).dump());
  } else {
    fmt::print("{}", Describe(*job, NowMs()));
  }
  co_return job->state() == proto::UNKNOWN ? kExitUnknown : 0;
}

// `wait` and `output` attach to the job; what they ask for differs.
awaitable<int> Attach(Session& session, proto::AttachRequest request, const JobVerbOptions& options,
                      bool exit_is_jobs) {
  auto updates = rpc::Start<rpc::ClientReader<proto::Update>>(
      session.loop(), session.Options(),
      [&](auto& call) { session.stub().async()->Attach(&call.context(), &request, &call); });
  FollowOptions follow;
  follow.job_id = request.job_id();
  follow.again = request;
  follow.patience = std::chrono::seconds(options.reattach_within);
  follow.cancels_on_interrupt = false;
  const auto followed = co_await Follow(session, updates, follow);
  if (!followed.ok()) {
    co_return Report(followed.status());
  }
  if (followed->was_left) {
    co_return kExitCancelled;
  }
  if (!exit_is_jobs) {
    co_return 0;
  }
  fmt::print(stderr, "{}", EndText(followed->job));
  co_return ExitCodeOf(followed->job);
}

awaitable<int> CancelJob(Session& session, const std::string& id) {
  const auto reply = co_await Cancel(session, id);
  co_return reply.ok() ? 0 : Report(reply.status());
}

// GRAM's signals by GRAM's names; what a site does not know of them it refuses by itself.
constexpr std::array<const char*, 10> kSignals = {"cancel",       "suspend",       "resume",
                                                  "priority",     "commit_request", "commit_extend",
                                                  "stdio_update", "stdio_size",    "stop_manager",
                                                  "commit_end"};

int SignalNumber(const std::string& name) {
  const auto found = std::find(kSignals.begin(), kSignals.end(), name);
  return found == kSignals.end() ? 0 : static_cast<int>(found - kSignals.begin()) + 1;
}

awaitable<int> SignalJob(Session& session, const std::string& id, const JobVerbOptions& options) {
  proto::RequestBody body;
  body.mutable_signal()->set_job_id(id);
  body.mutable_signal()->set_number(SignalNumber(options.signal));
  body.mutable_signal()->set_argument(options.argument);
  const auto request = session.Sign(std::move(body));
  if (!request.ok()) {
    co_return Report(request.status());
  }
  if (!options.save_request.empty()) {
    const absl::Status saved = SaveRequest(*request, options.save_request);
    co_return saved.ok() ? 0 : Report(saved);
  }
  const auto reply =
      co_await session.Call<proto::SignedRequest, proto::CommandReply>(&Session::Async::Command, *request);
  co_return reply.ok() ? 0 : Report(reply.status());
}

awaitable<int> List(Session& session, bool all, std::vector<proto::JobStatus>& jobs) {
  proto::ListRequest request;
  request.set_all(all);
  const auto reply =
      co_await session.Call<proto::ListRequest, proto::StatusReply>(&Session::Async::List, request);
  if (!reply.ok()) {
    co_return Report(reply.status());
  }
  jobs.insert(jobs.end(), reply->job().begin(), reply->job().end());
  if (reply->is_cut()) {
    fmt::print(stderr, "sekisho: {} has more; these are the newest\n", session.target().contact.Address());
  }
  co_return 0;
}

// Every site that has a name, or the one asked for; one that fails does not hide the others.
int ListVerb(const JobVerbOptions& options) {
  std::vector<std::string> sites = {options.resource};
  if (options.resource.empty()) {
    const auto known = Sites::Load();
    if (!known.ok()) {
      return Report(known.status());
    }
    sites = known->Names();
  }
  if (sites.empty()) {
    return Report(Refuse(absl::StatusCode::kInvalidArgument, 0, "no site is known",
                         "give -r and a contact, or write sites.json"));
  }
  std::vector<proto::JobStatus> jobs;
  int exit_code = 0;
  for (const std::string& site : sites) {
    const int code =
        WithSite(site, [&](Session& session) { return List(session, options.all, jobs); });
    exit_code = exit_code != 0 ? exit_code : code;
  }
  if (options.is_json) {
    auto json = nlohmann::json::array();
    for (const auto& job : jobs) {
      json.push_back(ToJson(job));
    }
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("{}", Table(jobs, NowMs()));
  }
  return exit_code;
}

// Runs `one` for each job named; the first exit code that is not 0.
template <typename One>
int ForEachJob(const std::vector<std::string>& jobs, One one) {
  int exit_code = 0;
  for (const std::string& job : jobs) {
    const int code = WithJob(job, one);
    exit_code = exit_code != 0 ? exit_code : code;
  }
  return exit_code;
}

CLI::App* AddJobVerb(CLI::App& app, const char* name, const char* help,
                     const std::shared_ptr<JobVerbOptions>& options) {
  auto* verb = app.add_subcommand(name, help);
  verb->add_option("JOB", options->jobs, "SITE/ID, as submit printed it, or a job contact")->required();
  return verb;
}

}  // namespace

void AddStatusVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<JobVerbOptions>();
  auto* verb = AddJobVerb(app, "status", "What a job does, and why it waits", options);
  verb->add_flag("--json", options->is_json, "Print JSON, a line each");
  verb->add_flag("--links", options->links, "Of an MPI program over sites: what each pair of its ranks used");
  verb->callback([options, &invocation] {
    invocation.exit_code = ForEachJob(options->jobs, [&](Session& session, const std::string& id) {
      return options->links ? ShowLinks(session, id, options->is_json) : PrintStatus(session, id, options->is_json);
    });
  });
}

void AddReattach(CLI::App& verb, JobVerbOptions& options) {
  verb.add_option("--reattach-within", options.reattach_within,
                  "Seconds to come back to the job within when the connection is lost")
      ->check(CLI::Range(1, 86400));
}

void AddWaitVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<JobVerbOptions>();
  auto* verb = AddJobVerb(app, "wait", "Wait for a job's end; exits as the job did", options);
  AddReattach(*verb, *options);
  verb->callback([options, &invocation] {
    invocation.exit_code = ForEachJob(options->jobs, [&](Session& session, const std::string& id) {
      proto::AttachRequest request;
      request.set_job_id(id);
      request.set_follow(true);
      request.set_events(true);
      return Attach(session, request, *options, true);
    });
  });
}

void AddOutputVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<JobVerbOptions>();
  auto* verb = AddJobVerb(app, "output", "Print a job's output so far; stdout and stderr kept apart", options);
  verb->add_flag("-f,--follow", options->follow, "Go on until the job has ended");
  AddReattach(*verb, *options);
  verb->add_option("--task", options->task, "Of this task only, from 0")->check(CLI::NonNegativeNumber);
  verb->callback([options, &invocation] {
    invocation.exit_code = ForEachJob(options->jobs, [&](Session& session, const std::string& id) {
      proto::AttachRequest request;
      request.set_job_id(id);
      request.set_output(true);
      request.set_follow(options->follow);
      request.set_task(options->task + 1);
      return Attach(session, request, *options, false);
    });
  });
}

void AddCancelVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<JobVerbOptions>();
  auto* verb = AddJobVerb(app, "cancel", "End a job and all that it started", options);
  verb->callback([options, &invocation] { invocation.exit_code = ForEachJob(options->jobs, CancelJob); });
}

void AddSignalVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<JobVerbOptions>();
  auto* verb = app.add_subcommand("signal", "Suspend or resume a job, or another of GRAM's signals");
  options->jobs.resize(1);
  verb->add_option("JOB", options->jobs[0], "SITE/ID, as submit printed it, or a job contact")->required();
  verb->add_option("SIGNAL", options->signal, "suspend, resume, cancel, or priority with -100 to 0")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>(kSignals.begin(), kSignals.end())));
  verb->add_option("ARGUMENT", options->argument, "The signal's argument");
  verb->add_option("--save-request", options->save_request, "Sign the request and write it to this file; send nothing");
  verb->callback([options, &invocation] {
    invocation.exit_code = WithJob(options->jobs[0], [&](Session& session, const std::string& id) {
      return SignalJob(session, id, *options);
    });
  });
}

void AddListVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<JobVerbOptions>();
  auto* verb = app.add_subcommand("list", "Your jobs at all sites");
  verb->add_option("-r,--resource", options->resource, "At this site only");
  verb->add_flag("--all", options->all, "Also those that have ended");
  verb->add_flag("--json", options->is_json, "Print JSON");
  verb->callback([options, &invocation] { invocation.exit_code = ListVerb(*options); });
}

}  // namespace sekisho::client
