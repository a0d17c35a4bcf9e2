// SPDX-License-Identifier: Apache-2.0
// sekisho cancel, signal, suspend, resume, hold, release: what a user says to jobs that exist.
#include <array>
#include <memory>

#include <CLI/CLI.hpp>

#include "client/job/elements.h"
#include "client/job/job_options.h"
#include "client/job/redirect.h"
#include "client/site/each_site.h"
#include "client/site/saved_request.h"
#include "client/site/site_call.h"
#include "client/site/until_judged.h"
#include "client/verbs/verbs.h"

namespace sekisho::client {
namespace {

struct SignalOptions {
  std::string job, signal, argument, save_request;
};

awaitable<int> CancelJob(Session& session, const std::string& id) {
  proto::RequestBody body;
  body.mutable_cancel()->set_job_id(id);
  const auto reply = co_await Command(session, std::move(body));
  co_return reply.ok() ? 0 : Report(reply.status());
}

// GRAM's signals by GRAM's names; what a site does not know of them it refuses by itself.
constexpr std::array<const char*, 10> kSignals = {"cancel",       "suspend",       "resume",
                                                  "priority",     "commit_request", "commit_extend",
                                                  "stdio_update", "stdio_size",    "stop_manager",
                                                  "commit_end"};

// Ours, which GRAM lacks.
constexpr std::array<std::pair<const char*, int>, 2> kOurSignals = {{{"hold", 101}, {"release", 102}}};

int SignalNumber(const std::string& name) {
  for (const auto& [ours, number] : kOurSignals) {
    if (name == ours) {
      return number;
    }
  }
  const auto found = std::find(kSignals.begin(), kSignals.end(), name);
  return found == kSignals.end() ? 0 : static_cast<int>(found - kSignals.begin()) + 1;
}

std::vector<std::string> SignalNames() {
  std::vector<std::string> names(kSignals.begin(), kSignals.end());
  for (const auto& [ours, number] : kOurSignals) {
    names.emplace_back(ours);
  }
  return names;
}

absl::Status CheckSignal(const SignalOptions& options) {
  return SignalNumber(options.signal) == kStdioUpdate ? CheckUpdate(options.argument) : absl::OkStatus();
}

awaitable<int> SignalJob(Session& session, const std::string& id, const SignalOptions& options) {
  proto::RequestBody body;
  body.mutable_signal()->set_job_id(id);
  body.mutable_signal()->set_number(SignalNumber(options.signal));
  body.mutable_signal()->set_argument(options.argument);
  if (!options.save_request.empty()) {
    const auto request = session.Sign(std::move(body));
    const absl::Status saved = request.ok() ? SaveRequest(*request, options.save_request) : request.status();
    co_return saved.ok() ? 0 : Report(saved);
  }
  const auto reply = co_await Command(session, std::move(body));
  co_return reply.ok() ? 0 : Report(reply.status());
}

}  // namespace

void AddCancelVerb(CLI::App& app, Invocation& invocation) {
  auto jobs = std::make_shared<std::vector<std::string>>();
  JobVerb(app, "cancel", "End a job and all that it started", *jobs)->callback([jobs, &invocation] {
    const auto names = ExpandElements(*jobs);
    if (!names.ok()) {
      invocation.exit_code = Report(names.status());
    } else if (names->size() == 1) {
      invocation.exit_code = WithJob(names->front(), CancelJob);
    } else {
      invocation.exit_code = ForEachSite(*names, [](Session& session, std::vector<std::string> ids) {
        return SignalAll(session, std::move(ids), 1, "");
      });
    }
  });
}

void AddSignalVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<SignalOptions>();
  auto* verb = app.add_subcommand("signal", "Suspend or resume a job, or another of GRAM's signals");
  verb->add_option("JOB", options->job, "SITE/ID, as submit printed it, or a job contact")->required();
  verb->add_option("SIGNAL", options->signal, "suspend, resume, hold, release, cancel, priority with -100 to 0, or stdio_update with '&(stdout=...)'")
      ->required()
      ->check(CLI::IsMember(SignalNames()));
  verb->add_option("ARGUMENT", options->argument, "The signal's argument");
  verb->add_option("--save-request", options->save_request, "Sign the request and write it to this file; send nothing");
  verb->callback([options, &invocation] {
    if (const absl::Status status = CheckSignal(*options); !status.ok()) {
      invocation.exit_code = Report(status);
      return;
    }
    invocation.exit_code = WithJob(options->job, [&](Session& session, const std::string& id) {
      return SignalJob(session, id, *options);
    });
  });
}

// suspend, resume, hold, release: signals that are often used, to any number of jobs.
void AddPlainSignalVerbs(CLI::App& app, Invocation& invocation) {
  for (const auto& [name, help] : {std::pair("suspend", "Stop all processes of running jobs, until they are resumed"),
                                   {"resume", "Let suspended jobs go on"},
                                   {"hold", "Keep waiting jobs from starting, until they are released"},
                                   {"release", "Let held jobs start when it is their turn"}}) {
    auto jobs = std::make_shared<std::vector<std::string>>();
    JobVerb(app, name, help, *jobs)->callback([jobs, &invocation, number = SignalNumber(name)] {
      invocation.exit_code = ForEachSite(*jobs, [number](Session& session, std::vector<std::string> ids) {
        return SignalAll(session, std::move(ids), number, "");
      });
    });
  }
}

}  // namespace sekisho::client
