// SPDX-License-Identifier: Apache-2.0
// sekisho admin: what a site's administrators ask of its queue server.  docs/operations/qserver.md.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/harmless.h"
#include "client/site_call.h"
#include "client/verbs.h"

namespace sekisho::client {
namespace {

struct LostOptions {
  std::string site, node;
  bool is_json = false;
};

awaitable<int> DeclareLost(Session& session, const LostOptions& options) {
  proto::RequestBody body;
  body.mutable_administer()->mutable_lost()->set_node(options.node);
  const auto request = session.Sign(std::move(body));
  if (!request.ok()) {
    co_return Report(request.status());
  }
  const auto reply = co_await session.Call<proto::SignedRequest, proto::AdministerReply>(
      &Session::Async::Administer, *request);
  if (!reply.ok()) {
    co_return Report(reply.status());
  }
  if (options.is_json) {
    const std::vector<std::string> jobs(reply->job_id().begin(), reply->job_id().end());
    fmt::print("{}\n", nlohmann::json{{"site", options.site}, {"node", options.node}, {"jobs", jobs}}.dump());
    co_return 0;
  }
  for (const std::string& job : reply->job_id()) {
    fmt::print("{}\n", Harmless(job));
  }
  fmt::print(stderr, "node {} is declared lost; jobs that fail by it: {}\n", options.node, reply->job_id_size());
  co_return 0;
}

}  // namespace

void AddAdminVerb(CLI::App& app, Invocation& invocation) {
  auto* admin = app.add_subcommand("admin", "For a site's administrators");
  admin->require_subcommand(1);
  auto options = std::make_shared<LostOptions>();
  auto* lost = admin->add_subcommand("lost", "Declare that a node will not come back: its jobs fail, and are printed");
  lost->add_option("SITE", options->site, "The site, or a contact")->required();
  lost->add_option("NODE", options->node, "The node, as `sekisho sites SITE` shows it")->required();
  lost->add_flag("--json", options->is_json, "Print JSON");
  lost->callback([options, &invocation] {
    invocation.exit_code =
        WithSite(options->site, [&](Session& session) { return DeclareLost(session, *options); });
  });
}

}  // namespace sekisho::client
