// SPDX-License-Identifier: Apache-2.0
// sekisho admin: what a site's administrators ask of its queue server.  docs/operations/qserver.md.
#include <functional>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/verbs/admin_text.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "client/verbs/verbs.h"

namespace sekisho::client {
namespace {

using Administer = proto::RequestBody::Administer;

struct AdminOptions {
  std::string site, node, subject, job, reason;
  bool keep_jobs = false;
  bool is_json = false;
};

awaitable<absl::StatusOr<proto::AdministerReply>> Say(Session& session, Administer word) {
  proto::RequestBody body;
  *body.mutable_administer() = std::move(word);
  CO_ASSIGN_OR_RETURN(const proto::SignedRequest request, session.Sign(std::move(body)));
  co_return co_await session.Call<proto::SignedRequest, proto::AdministerReply>(&Session::Async::Administer, request);
}

int Print(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return 0;
}

// Says it; prints the jobs that it concerns, and how many they are.
awaitable<int> SayAndPrint(Session& session, Administer word, nlohmann::json about, std::string done, bool is_json) {
  const auto reply = co_await Say(session, std::move(word));
  if (!reply.ok()) {
    co_return Report(reply.status());
  }
  if (is_json) {
    about["jobs"] = std::vector<std::string>(reply->job_id().begin(), reply->job_id().end());
    co_return Print(about);
  }
  for (const std::string& job : reply->job_id()) {
    fmt::print("{}\n", Harmless(job));
  }
  fmt::print(stderr, "{}: {}\n", done, reply->job_id_size());
  co_return 0;
}

awaitable<int> ShowNodes(Session& session, bool is_json) {
  const auto site =
      co_await session.Call<proto::SiteRequest, proto::SiteInfo>(&Session::Async::Site, proto::SiteRequest());
  if (!site.ok()) {
    co_return Report(site.status());
  }
  if (is_json) {
    co_return Print(AdminNodesJson(*site));
  }
  fmt::print("{}", AdminNodesTable(*site));
  if (!site->drained().empty()) {
    fmt::print(stderr, "{}\n", Harmless(site->drained()));
  }
  co_return 0;
}

awaitable<int> ShowBans(Session& session, bool is_json) {
  Administer word;
  word.mutable_show();
  const auto reply = co_await Say(session, std::move(word));
  if (!reply.ok()) {
    co_return Report(reply.status());
  }
  if (is_json) {
    co_return Print(BansJson(*reply));
  }
  fmt::print("{}", BansTable(*reply));
  co_return 0;
}

using Body = std::function<int(const AdminOptions&)>;

CLI::App* Add(CLI::App& admin, Invocation& invocation, const char* name, const char* help,
              std::shared_ptr<AdminOptions> options, Body body) {
  CLI::App* verb = admin.add_subcommand(name, help);
  verb->add_flag("--json", options->is_json, "Print JSON");
  verb->callback([options, body = std::move(body), &invocation] { invocation.exit_code = body(*options); });
  return verb;
}

void AddSite(CLI::App& verb, AdminOptions& options) {
  verb.add_option("SITE", options.site, "The site, or a contact")->required();
}

void AddReason(CLI::App& verb, AdminOptions& options, const char* to_whom) {
  verb.add_option("--reason", options.reason, std::string("Shown to ") + to_whom);
}

void AddSubject(CLI::App& verb, AdminOptions& options) {
  verb.add_option("SUBJECT", options.subject, "As in a certificate: /O=Grid/CN=Taro")->required();
}

int Ban(const AdminOptions& options, bool lift) {
  Administer word;
  word.mutable_ban()->set_subject(options.subject);
  word.mutable_ban()->set_reason(options.reason);
  word.mutable_ban()->set_keep_jobs(options.keep_jobs);
  word.mutable_ban()->set_lift(lift);
  return WithSite(options.site, [&](Session& session) {
    const std::string done = lift ? options.subject + " is banned no more; its jobs that this concerns"
                                  : options.subject + " is banned; its jobs that end by it";
    return SayAndPrint(session, word, {{"site", options.site}, {"subject", options.subject}}, done, options.is_json);
  });
}

int Drain(const AdminOptions& options, bool lift) {
  Administer word;
  word.mutable_drain()->set_node(options.node);
  word.mutable_drain()->set_reason(options.reason);
  word.mutable_drain()->set_lift(lift);
  return WithSite(options.site, [&](Session& session) {
    const std::string what = options.node.empty() ? "site " + options.site : "node " + options.node;
    const std::string done = lift ? what + " takes jobs again; jobs that this concerns"
                                  : "nothing starts any more on " + what + "; jobs that still run there";
    return SayAndPrint(session, word, {{"site", options.site}, {"node", options.node}}, done, options.is_json);
  });
}

int DeclareLost(const AdminOptions& options) {
  Administer word;
  word.mutable_lost()->set_node(options.node);
  return WithSite(options.site, [&](Session& session) {
    return SayAndPrint(session, word, {{"site", options.site}, {"node", options.node}},
                       fmt::format("node {} is declared lost; jobs that fail by it", options.node), options.is_json);
  });
}

int Kill(const AdminOptions& options) {
  return WithJob(options.job, [&](Session& session, const std::string& id) {
    Administer word;
    word.mutable_kill()->set_job_id(id);
    word.mutable_kill()->set_reason(options.reason);
    return SayAndPrint(session, word, {{"job", id}}, "jobs that end by it", options.is_json);
  });
}

}  // namespace

void AddAdminVerb(CLI::App& app, Invocation& invocation) {
  auto* admin = app.add_subcommand("admin", "For a site's administrators");
  admin->require_subcommand(1);
  const auto fresh = [] { return std::make_shared<AdminOptions>(); };

  auto options = fresh();
  CLI::App* verb = Add(*admin, invocation, "nodes", "The site's nodes: state, agent, why nothing starts there", options,
                       [](const AdminOptions& given) {
                         return WithSite(given.site, [&](Session& session) { return ShowNodes(session, given.is_json); });
                       });
  AddSite(*verb, *options);

  options = fresh();
  verb = Add(*admin, invocation, "drain", "Start nothing any more on a node, or on the whole site; what runs goes on",
             options, [](const AdminOptions& given) { return Drain(given, false); });
  AddSite(*verb, *options);
  verb->add_option("NODE", options->node, "The node; none: the whole site");
  AddReason(*verb, *options, "those who wait");

  options = fresh();
  verb = Add(*admin, invocation, "resume", "Let a drained node, or site, take jobs again", options,
             [](const AdminOptions& given) { return Drain(given, true); });
  AddSite(*verb, *options);
  verb->add_option("NODE", options->node, "The node; none: the whole site");

  options = fresh();
  verb = Add(*admin, invocation, "ban", "End a subject's jobs, which are printed, and refuse its requests", options,
             [](const AdminOptions& given) { return Ban(given, false); });
  AddSite(*verb, *options);
  AddSubject(*verb, *options);
  AddReason(*verb, *options, "the banned");
  verb->add_flag("--keep-jobs", options->keep_jobs, "Its jobs go on");

  options = fresh();
  verb = Add(*admin, invocation, "unban", "Lift a ban", options,
             [](const AdminOptions& given) { return Ban(given, true); });
  AddSite(*verb, *options);
  AddSubject(*verb, *options);

  options = fresh();
  verb = Add(*admin, invocation, "bans", "Who is banned, by whom and why", options, [](const AdminOptions& given) {
    return WithSite(given.site, [&](Session& session) { return ShowBans(session, given.is_json); });
  });
  AddSite(*verb, *options);

  options = fresh();
  verb = Add(*admin, invocation, "kill", "End anybody's job", options, Kill);
  verb->add_option("JOB", options->job, "SITE/ID, or a job contact")->required();
  AddReason(*verb, *options, "its user");

  options = fresh();
  verb = Add(*admin, invocation, "lost", "Declare that a node will not come back: its jobs fail, and are printed",
             options, DeclareLost);
  AddSite(*verb, *options);
  verb->add_option("NODE", options->node, "The node")->required();
}

}  // namespace sekisho::client
