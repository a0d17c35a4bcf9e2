// SPDX-License-Identifier: Apache-2.0
#include "client/site/site_call.h"

#include <cstdio>

#include "client/site/exit_code.h"

namespace sekisho::client {

int WithTarget(const Target& target, const std::function<awaitable<int>(Session&)>& ask) {
  // Never destroyed: a thread that reads standard input may still post to the loop, and gRPC's threads finish calls
  // of the session, until main() leaves by _exit.
  Loop& loop = *new Loop;
  auto session = Session::Open(loop, target);
  if (!session.ok()) {
    return Report(session.status());
  }
  return RunOnLoop(loop, ask(*session->release()));
}

int WithSite(const std::string& text, const std::function<awaitable<int>(Session&)>& ask) {
  const auto sites = Sites::Load();
  if (!sites.ok()) {
    return Report(sites.status());
  }
  const auto target = sites->Resolve(text);
  return target.ok() ? WithTarget(*target, ask) : Report(target.status());
}

int WithJob(const std::string& text,
            const std::function<awaitable<int>(Session&, const std::string&)>& ask) {
  const auto sites = Sites::Load();
  if (!sites.ok()) {
    return Report(sites.status());
  }
  const auto job = sites->ResolveJob(text);
  if (!job.ok()) {
    return Report(job.status());
  }
  return WithTarget(job->target, [&](Session& session) { return ask(session, job->id); });
}

int ForEachJob(const std::vector<std::string>& jobs,
               const std::function<awaitable<int>(Session&, const std::string& job_id)>& ask) {
  int exit_code = 0;
  for (const std::string& job : jobs) {
    const int code = WithJob(job, ask);
    exit_code = exit_code != 0 ? exit_code : code;
  }
  return exit_code;
}

int Report(const absl::Status& error) {
  std::fputs(ErrorText(error).c_str(), stderr);
  return ExitCodeOf(error);
}

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace sekisho::client
