// SPDX-License-Identifier: Apache-2.0
#include "client/verbs/verb_many.h"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "client/job/job_files.h"
#include "client/job/many.h"
#include "client/site/any_site.h"
#include "client/site/site_call.h"

namespace sekisho::client {
namespace {

// What ended jobs keep for us: where each job's own request says.
awaitable<int> FetchAll(Session& session, const std::vector<OneOfFile>& jobs, const std::vector<Submitted>& submitted,
                        const std::map<std::string, proto::JobStatus>& ended, DownloadOptions options) {
  int exit_code = 0;
  for (const Submitted& one : submitted) {
    const auto at = ended.find(one.id);
    if (at == ended.end()) {
      continue;
    }
    const absl::Status fetched = co_await FetchStagedOut(session, at->second, jobs[one.index].rsl, options);
    if (!fetched.ok()) {
      fmt::print(stderr, "sekisho: its files are kept at the site: sekisho get {}\n",
                 JobName(session.target(), session.target().site, one.id));
      const int code = ReportFetch(fetched);
      exit_code = exit_code != 0 ? exit_code : code;
    }
    if (fetched.code() == absl::StatusCode::kCancelled) {
      break;
    }
  }
  co_return exit_code;
}

awaitable<int> RunMany(Session& session, const std::vector<OneOfFile>& jobs, const ManyVerb& options) {
  std::vector<Submitted> submitted;
  const ManyOptions many{NameOfMany(options.path), options.request_id, options.is_json, options.is_quiet};
  const int code = co_await SubmitMany(session, jobs, many, submitted);
  if (!options.waits) {
    co_return code;
  }
  std::vector<std::string> ids;
  for (const Submitted& one : submitted) {
    ids.push_back(one.id);
  }
  std::map<std::string, proto::JobStatus> ended;
  const Codes codes = co_await WaitForAll(session, ids, options.patience,
                                          [&](const proto::JobStatus& job) { ended[job.job_id()] = job; });
  const DownloadOptions download{.patience = options.patience, .is_quiet = options.is_quiet || options.is_json};
  const int fetched = co_await FetchAll(session, jobs, submitted, ended, download);
  const int worst = FirstBad({code, fetched, FirstBad(codes)});
  co_return worst;
}

// Those that were given, also of its groups.
std::vector<std::string> Given(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() > 0) {
      names.push_back(option->get_name());
    }
  }
  for (const CLI::App* group : verb.get_subcommands(nullptr)) {
    const std::vector<std::string> own = Given(*group);
    names.insert(names.end(), own.begin(), own.end());
  }
  return names;
}

}  // namespace

absl::Status StandsAlone(const CLI::App& verb, const Invocation& invocation, const std::vector<std::string>& with) {
  if (invocation.has_command) {
    return absl::InvalidArgumentError("--many stands alone: the file says all of each job; saw a command");
  }
  for (const std::string& name : Given(verb)) {
    if (name != "--many" && std::find(with.begin(), with.end(), name) == with.end()) {
      return absl::InvalidArgumentError(
          fmt::format("--many stands alone: the file says all of each job; saw {}", name));
    }
  }
  return absl::OkStatus();
}

int RunManyVerb(const ManyVerb& options) {
  if (options.resource.empty()) {
    return Report(NoPlace());
  }
  const auto jobs = ReadMany(options.path);
  if (!jobs.ok()) {
    return Report(jobs.status());
  }
  return WithSite(options.resource, [&](Session& session) { return RunMany(session, *jobs, options); });
}

}  // namespace sekisho::client
