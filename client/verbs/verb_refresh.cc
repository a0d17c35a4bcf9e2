// SPDX-License-Identifier: Apache-2.0
#include "client/verbs/verb_refresh.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "client/job/delegate.h"
#include "client/job/job_options.h"
#include "client/site/site_call.h"

namespace sekisho::client {

void AddRefreshVerb(CLI::App& proxy, Invocation& invocation) {
  struct Options {
    std::vector<std::string> jobs;
    RefreshOptions refresh;
  };
  auto options = std::make_shared<Options>();
  auto* verb = JobVerb(proxy, "refresh", "Give jobs that wait or run a new credential, made of your proxy as it is now",
                       options->jobs);
  verb->add_flag("-D,--full-proxy", options->refresh.is_full, "A full one, by which tasks may submit jobs; else limited");
  verb->add_option("--save-request", options->refresh.save_request,
                   "Sign the request and write it to this file; send nothing");
  verb->callback([options, &invocation] {
    invocation.exit_code = ForEachJob(options->jobs, [&](Session& session, const std::string& id) {
      return RefreshCredential(session, id, options->refresh);
    });
  });
}

}  // namespace sekisho::client
