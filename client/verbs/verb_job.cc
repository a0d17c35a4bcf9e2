// SPDX-License-Identifier: Apache-2.0
// sekisho status, list, wait, output: a job that exists, by its name.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "client/job/elements.h"
#include "client/job/follow.h"
#include "client/job/job_options.h"
#include "client/job/job_text.h"
#include "client/ranges.h"
#include "client/site/each_site.h"
#include "client/site/exit_code.h"
#include "client/site/site_call.h"
#include "client/site/until_judged.h"
#include "client/verbs/verbs.h"
#include "client/world/show_links.h"
#include "common/job_state.h"

namespace sekisho::client {
namespace {

struct JobVerbOptions {
  std::vector<std::string> jobs;
  std::string resource;
  bool is_json = false, all = false, follow = false, links = false, elements = false;
  int task = -1;
  int reattach_within = 300;
};

// A line for each element.
awaitable<int> PrintElements(Session& session, const proto::JobStatus& array, bool is_json) {
  const auto elements = co_await StatusOfAll(session, ElementIds(array));
  if (!elements.ok()) {
    co_return Report(elements.status());
  }
  if (!is_json) {
    fmt::print("{}", Table(*elements, NowMs()));
  }
  for (const proto::JobStatus& element : *elements) {
    if (is_json) {
      fmt::print("{}\n", ToJson(element).dump());
    }
  }
  co_return 0;
}

awaitable<int> PrintStatus(Session& session, const std::string& id, bool is_json, bool with_elements) {
  const std::vector<std::string> ids{id};
  const auto jobs = co_await StatusOfAll(session, ids);
  if (!jobs.ok()) {
    co_return Report(jobs.status());
  }
  const proto::JobStatus& job = jobs->front();
  if (is_json) {
    fmt::print("{}\n", ToJson(job).dump());
  } else {
    fmt::print("{}", Describe(job, NowMs()));
  }
  if (with_elements && job.has_array()) {
    co_return co_await PrintElements(session, job, is_json);
  }
  co_return job.state() == proto::UNKNOWN ? kExitUnknown : 0;
}

// Of many: a line each.
awaitable<Codes> PrintStatuses(Session& session, std::vector<std::string> ids, bool is_json) {
  const auto jobs = co_await StatusOfAll(session, ids);
  if (!jobs.ok()) {
    co_return Codes(ids.size(), Report(jobs.status()));
  }
  Codes codes;
  for (const proto::JobStatus& job : *jobs) {
    fmt::print("{}", is_json ? ToJson(job).dump() + "\n" : Describe(job, NowMs()));
    codes.push_back(job.state() == proto::UNKNOWN ? kExitUnknown : 0);
  }
  co_return codes;
}

awaitable<int> Attach(Session& session, proto::AttachRequest request, const JobVerbOptions& options, bool exit_is_jobs);

// One after the other, in the order of their indices.
awaitable<int> OutputOfElements(Session& session, proto::JobStatus array, proto::AttachRequest request,
                                const JobVerbOptions& options) {
  for (const std::string& id : ElementIds(array)) {
    request.set_job_id(id);
    const int code = co_await Attach(session, request, options, false);
    if (code != 0) {
      co_return code;
    }
  }
  co_return 0;
}

// `wait` and `output` attach to the job; what they ask for differs.
awaitable<int> Attach(Session& session, proto::AttachRequest request, const JobVerbOptions& options,
                      bool exit_is_jobs) {
  FollowOptions follow;
  follow.job_id = request.job_id();
  follow.wanted = request;
  follow.patience = std::chrono::seconds(options.reattach_within);
  follow.cancels_on_interrupt = false;
  const auto followed = co_await Follow(session, follow);
  if (!followed.ok()) {
    co_return Report(followed.status());
  }
  if (followed->was_left) {
    co_return kExitCancelled;
  }
  if (!exit_is_jobs && followed->job.has_array()) {
    co_return co_await OutputOfElements(session, followed->job, request, options);
  }
  if (!exit_is_jobs) {
    co_return 0;
  }
  fmt::print(stderr, "{}", EndText(followed->job));
  co_return ExitCodeOf(followed->job);
}

awaitable<int> List(Session& session, bool all, std::vector<proto::JobStatus>& jobs) {
  proto::ListRequest request;
  request.set_all(all);
  const auto reply =
      co_await Query<proto::ListRequest, proto::StatusReply>(session, &Session::Async::List, request);
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
                         "give -r and a contact, or write sites.json (docs/operations/cli.md, \"Names\")"));
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

bool AreMany(const std::vector<std::string>& jobs) { return jobs.size() > 1 || NamesElements(jobs.front()); }

}  // namespace

void AddStatusVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<JobVerbOptions>();
  auto* verb = JobVerb(app, "status", "What a job does, and why it waits", options->jobs);
  verb->add_flag("--json", options->is_json, "Print JSON, a line each");
  verb->add_flag("--links", options->links, "Of an MPI program over sites: what each pair of its ranks used");
  verb->add_flag("--elements", options->elements, "Of an array also each element");
  verb->callback([options, &invocation] {
    if (AreMany(options->jobs) && !options->elements && !options->links) {
      invocation.exit_code = ForEachSite(options->jobs, [&](Session& session, std::vector<std::string> ids) {
        return PrintStatuses(session, std::move(ids), options->is_json);
      });
      return;
    }
    invocation.exit_code = ForEachJob(options->jobs, [&](Session& session, const std::string& id) {
      return options->links ? ShowLinks(session, id, options->is_json)
                            : PrintStatus(session, id, options->is_json, options->elements);
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
  auto* verb = JobVerb(app, "wait", "Wait for a job's end; exits as the job did", options->jobs);
  AddReattach(*verb, *options);
  verb->callback([options, &invocation] {
    if (AreMany(options->jobs)) {
      invocation.exit_code = ForEachSite(options->jobs, [&](Session& session, std::vector<std::string> ids) {
        return WaitForAll(session, std::move(ids), std::chrono::seconds(options->reattach_within));
      });
      return;
    }
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
  auto* verb = JobVerb(app, "output", "Print a job's output so far; stdout and stderr kept apart", options->jobs);
  verb->add_flag("-f,--follow", options->follow, "Go on until the job has ended");
  AddReattach(*verb, *options);
  verb->add_option("--task", options->task, "Of this task only, from 0")
      ->check(kNotNegative);
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

void AddListVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<JobVerbOptions>();
  auto* verb = app.add_subcommand("list", "Your jobs at all sites");
  verb->add_option("-r,--resource", options->resource, "At this site only");
  verb->add_flag("--all", options->all, "Also those that have ended");
  verb->add_flag("--json", options->is_json, "Print JSON");
  verb->callback([options, &invocation] { invocation.exit_code = ListVerb(*options); });
}

}  // namespace sekisho::client
