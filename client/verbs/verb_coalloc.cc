// SPDX-License-Identifier: Apache-2.0
// sekisho coalloc: looks at a world that waits for its user's release, edits its parts, releases
// it. docs/protocol/15-mpirun.md, "Held".
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "client/job/upload.h"
#include "client/world/signed_part.h"
#include "client/site/any_site.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "client/verbs/verbs.h"
#include "client/world/coalloc_text.h"
#include "client/world/part_like.h"
#include "client/world/world_run.h"
#include "client/world/world_sign.h"
#include "client/world/world_sites.h"
#include "common/contact.h"
#include "common/identity/trust_store.h"
#include "common/part_name.h"
#include "proto/signed_parts.pb.h"

namespace sekisho::client {
namespace {

constexpr int kTries = 5;  // if somebody else edits the world as well

struct CoallocOptions {
  std::string name;   // SITE/WORLD
  std::string world;  // of it
  std::string part, site, start_type;
  std::optional<int> ranks;
  std::vector<std::string> command;
  bool is_json = false, only_if_ready = false, is_batch = false, tags_output = false;
};
using Options = std::shared_ptr<CoallocOptions>;

awaitable<absl::StatusOr<proto::CoallocReply>> Ask(Session& leader, Options options,
                                                   proto::CoallocRequest request) {
  request.set_world(options->world);
  co_return co_await leader.Call<proto::CoallocRequest, proto::CoallocReply>(
      &Session::Async::Coallocate, std::move(request));
}

awaitable<absl::StatusOr<proto::CoallocReply>> Look(Session& leader, Options options) {
  proto::CoallocRequest request;
  request.mutable_look();
  co_return co_await Ask(leader, options, std::move(request));
}

int Show(const CoallocOptions& options, const absl::StatusOr<proto::CoallocReply>& reply) {
  if (!reply.ok()) {
    return Report(reply.status());
  }
  if (options.is_json) {
    fmt::print("{}\n", ToJson(options.name, *reply).dump());
  } else {
    fmt::print("{}", Describe(*reply));
  }
  return 0;
}

awaitable<int> ShowWorld(Session& leader, Options options) {
  const auto reply = co_await Look(leader, options);
  co_return Show(*options, reply);
}

// The part as its user has signed it.
absl::StatusOr<proto::RequestBody> SignedPart(const CoallocOptions& options, const proto::CoallocReply& world, int part) {
  ASSIGN_OR_RETURN(const std::string directory, identity::FindTrustDirectory());
  ASSIGN_OR_RETURN(auto trust, identity::TrustStore::Load(directory));
  identity::JudgedChains signers(std::move(trust), identity::Purpose::kAny);
  proto::SignedParts shown;
  shown.ParseFromString(world.SerializeAsString());
  return JudgeSignedPart(part < shown.submit_size() ? shown.submit(part) : proto::SignedRequest(), options.world, part,
                         OwnSubject(), signers,
                         std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
}

// The place that a further part gets; the world's own terms are those of `like`, which its user has signed.
proto::Charter CharterOf(const CoallocOptions& options, const proto::CoallocReply& world, const proto::Charter& like,
                         int ranks) {
  proto::Charter charter = like;
  charter.set_part(world.part_size());
  charter.set_parts(world.part_size() + 1);
  int before = 0;
  for (const proto::CoallocReply::Part& part : world.part()) {
    before += part.count();
  }
  charter.clear_rank();
  charter.set_first_rank(like.independent() ? 0 : before);
  charter.set_ranks(charter.first_rank() + ranks);
  charter.set_start(StartTypeOf(options.start_type));
  if (options.part.empty()) {
    charter.clear_label();  // who replaces a part has its name
  }
  return charter;
}

struct NewPart {
  proto::LeadRequest::Part part;
  ClientFiles files;  // that it brings from here
};

absl::StatusOr<NewPart> PartFor(const CoallocOptions& options, const proto::CoallocReply& world, const WorldSite& site) {
  int like = 0;
  if (!options.part.empty()) {
    ASSIGN_OR_RETURN(like, PartNamed(world, options.part));
  }
  if (like < 0 || like >= world.part_size()) {
    return absl::InvalidArgumentError(fmt::format("there is no part {}", like));
  }
  ASSIGN_OR_RETURN(proto::RequestBody signed_part, SignedPart(options, world, like));
  while (options.part.empty() && signed_part.submit().charter().independent() && ++like < world.part_size()) {
    ASSIGN_OR_RETURN(signed_part, SignedPart(options, world, like));  // what is added meets the others
  }
  const proto::Charter& terms = signed_part.submit().charter();
  if (!terms.independent() && terms.relay().empty() && site.info.site() != world.part(0).site()) {
    return absl::FailedPreconditionError(
        fmt::format("no relay was found when {} was begun: all its parts must be at {}",
                    options.world, Harmless(world.part(0).site())));
  }
  if (!terms.independent() && site.info.relay().is_only_way() && site.info.relay().address() != terms.relay()) {
    return absl::FailedPreconditionError(fmt::format(
        "the nodes of {} reach no relay but their own, and {} meets at {}: begin it with a "
        "part at {}",
        site.info.site(), options.world, terms.relay(), site.info.site()));
  }
  const int ranks = options.ranks.value_or(options.part.empty() ? 1 : world.part(like).count());
  ASSIGN_OR_RETURN(const std::string rsl, PartLike(signed_part.submit().rsl(), ranks, options.command));
  WorldPart own = {.ranks = {options.site, 0, ranks}, .session = site.session, .site = site.info.site(), .rsl = rsl};
  ASSIGN_OR_RETURN(own.files, SumStagedFiles(rsl));
  NewPart made;
  ASSIGN_OR_RETURN(made.part, SignPart(own, CharterOf(options, world, terms, ranks), /*has_input=*/false));
  if (!options.part.empty()) {
    made.part.set_replaces(like);
  }
  made.files = std::move(own.files);
  return made;
}

// `files`: what the part brings that was added.
awaitable<absl::StatusOr<proto::CoallocReply>> Add(Session& leader, Options options, const WorldSite& site,
                                                   ClientFiles& files) {
  for (int tries = 1;; ++tries) {
    CO_ASSIGN_OR_RETURN(const proto::CoallocReply world, co_await Look(leader, options));
    CO_ASSIGN_OR_RETURN(NewPart made, PartFor(*options, world, site));
    proto::CoallocRequest request;
    *request.mutable_add()->mutable_part() = std::move(made.part);
    files = std::move(made.files);
    const auto added = co_await Ask(leader, options, std::move(request));
    if (added.status().code() != absl::StatusCode::kAborted || tries == kTries) {
      co_return added;
    }
  }
}

// What the last part brings; its site has it as soon as its leader has submitted it.
awaitable<absl::Status> SendFiles(Session& leader, Options options, Session& site, proto::CoallocReply world,
                                  ClientFiles files) {
  const int number = world.part_size() - 1;
  while (!files.empty() && number < world.part_size() && world.part(number).state() == proto::CoallocReply::PENDING) {
    if (const std::string& job_id = world.part(number).job_id(); !job_id.empty()) {
      co_return co_await Upload(site, job_id, files, {.reopens = true});
    }
    co_await Sleep(leader.loop(), std::chrono::milliseconds(200));
    CO_ASSIGN_OR_RETURN(world, co_await Look(leader, options));
  }
  co_return absl::OkStatus();
}

awaitable<int> AddPart(Session& leader, Options options) {
  const std::vector<RankRange> there = {{options->site, 0, 1}};
  auto sites = OpenSites(leader.loop(), there);
  if (!sites.ok()) {
    co_return Report(sites.status());
  }
  std::string unreached;
  const absl::Status asked = co_await AskSites(*sites, unreached);
  if (!asked.ok()) {
    co_return Report(asked);
  }
  const WorldSite& site = sites->at(options->site);
  ClientFiles files;
  const auto reply = co_await Add(leader, options, site, files);
  if (reply.ok()) {
    const absl::Status sent = co_await SendFiles(leader, options, *site.session, *reply, std::move(files));
    if (!sent.ok()) {
      co_return Report(sent);
    }
  }
  co_return Show(*options, reply);
}

awaitable<int> DropPart(Session& leader, Options options) {
  const auto world = co_await Look(leader, options);
  if (!world.ok()) {
    co_return Report(world.status());
  }
  const auto part = PartNamed(*world, options->part);
  if (!part.ok()) {
    co_return Report(part.status());
  }
  proto::CoallocRequest request;
  request.mutable_drop()->set_part(*part);
  const auto reply = co_await Ask(leader, options, std::move(request));
  co_return Show(*options, reply);
}

awaitable<int> CancelWorld(Session& leader, Options options) {
  proto::CoallocRequest request;
  request.mutable_cancel();
  const auto reply = co_await Ask(leader, options, std::move(request));
  co_return Show(*options, reply);
}

// With the gatekeeper that the part was signed for.
absl::StatusOr<Session*> SessionOf(Loop& loop, const CoallocOptions& options, const proto::CoallocReply& world, int part) {
  ASSIGN_OR_RETURN(const proto::RequestBody signed_part, SignedPart(options, world, part));
  Target target;
  target.site = world.part(part).site();
  ASSIGN_OR_RETURN(target.contact, ParseContact(world.part(part).address()));
  if (!signed_part.service().empty()) {
    target.contact.service = signed_part.service();
  }
  target.contact.account = signed_part.account();
  ASSIGN_OR_RETURN(auto session, Session::Open(loop, target));
  if (session->gatekeeper_subject() != signed_part.gatekeeper_subject()) {
    return absl::FailedPreconditionError(fmt::format("{} is {}, and the part was signed for {}", target.contact.Address(),
                                                     session->gatekeeper_subject(), signed_part.gatekeeper_subject()));
  }
  return session.release();
}

// The parts that run.  One whose site is out of reach runs unseen: the world has its release.
std::vector<WorldPart> PartsOf(Loop& loop, const CoallocOptions& options, const proto::CoallocReply& world) {
  std::vector<WorldPart> parts;
  for (int number = 0; number < world.part_size(); ++number) {
    const proto::CoallocReply::Part& seen = world.part(number);
    WorldPart& part = parts.emplace_back();
    part.ranks = {seen.site(), seen.first_rank(), seen.count()};
    part.ranks.label = seen.label();
    part.site = seen.site();
    part.start = seen.start();
    if (seen.state() == proto::CoallocReply::DROPPED) {
      continue;
    }
    const auto session = SessionOf(loop, options, world, number);
    if (session.ok()) {
      part.session = *session;
      continue;
    }
    Report(session.status());
    fmt::print(stderr, "sekisho: it is released; what {} writes is not shown: sekisho output {}\n",
               Harmless(PartName(number, seen.label())), Harmless(seen.site() + "/" + seen.job_id()));
  }
  return parts;
}

awaitable<int> ReleaseWorld(Session& leader, Options options) {
  proto::CoallocRequest request;
  request.mutable_release()->set_only_if_ready(options->only_if_ready);
  const auto reply = co_await Ask(leader, options, std::move(request));
  if (!reply.ok() || options->is_batch) {
    co_return Show(*options, reply);
  }
  std::vector<WorldPart> parts = PartsOf(leader.loop(), *options, *reply);
  WorldOptions world;
  world.tags_output = options->tags_output;
  co_return co_await FollowWorld(leader, options->world, std::move(parts), std::move(world));
}

using Verb = awaitable<int> (*)(Session& leader, Options options);

void Define(CLI::App& verb, Invocation& invocation, const Options& options, Verb run) {
  verb.add_flag("--json", options->is_json, "Print JSON");
  verb.callback([options, &invocation, run] {
    const auto name = ParseWorldName(options->name);
    if (!name.ok()) {
      invocation.exit_code = Report(name.status());
      return;
    }
    options->world = name->world;
    options->command = invocation.command;
    invocation.exit_code =
        WithSite(name->site, [&](Session& session) { return run(session, options); });
  });
}

void TakeNewPart(CLI::App& verb, CoallocOptions& options) {
  verb.add_option("SITE", options.site, "Where it goes")->required();
  verb.add_option("COUNT", options.ranks, "Its ranks")->check(CLI::Range(1, kRanksMax));
  verb.add_option("--start-type", options.start_type, "strict-barrier, loose-barrier or no-barrier")
      ->check(CLI::IsMember({"strict-barrier", "loose-barrier", "no-barrier"}));
}

}  // namespace

void AddCoallocVerb(CLI::App& app, Invocation& invocation) {
  auto* coalloc = app.add_subcommand(
      "coalloc", "Edit and release a world that `sekisho mpirun --hold` has begun");
  coalloc->require_subcommand(1);
  const auto add = [&](const char* name, const char* help) {
    auto options = std::make_shared<CoallocOptions>();
    auto* verb = coalloc->add_subcommand(name, help);
    verb->add_option("WORLD", options->name, "As mpirun printed it, SITE/WORLD")->required();
    return std::pair(verb, options);
  };
  const char* const part_help = "Its label, number or site";

  const auto [show, show_options] = add("show", "Its parts, and what each waits for");
  Define(*show, invocation, show_options, ShowWorld);

  const auto [more, more_options] =
      add("add", "One more part, behind all others: [-- PROGRAM ARGUMENTS...]");
  TakeNewPart(*more, *more_options);
  Define(*more, invocation, more_options, AddPart);

  const auto [drop, drop_options] = add("drop", "Go on without a part");
  drop->add_option("PART", drop_options->part, part_help)->required();
  Define(*drop, invocation, drop_options, DropPart);

  const auto [replace, replace_options] =
      add("replace", "Another part in place of one: [-- PROGRAM ARGUMENTS...]");
  replace->add_option("PART", replace_options->part, part_help)->required();
  TakeNewPart(*replace, *replace_options);
  Define(*replace, invocation, replace_options, AddPart);

  const auto [release, release_options] =
      add("release", "Run it once all parts stand ready, and stay with it");
  release->add_flag("--if-ready", release_options->only_if_ready, "Only if all stand ready now");
  release->add_flag("--batch", release_options->is_batch, "Leave at once");
  release->add_flag("--tag-output", release_options->tags_output,
                    "Each line with its rank and site");
  Define(*release, invocation, release_options, ReleaseWorld);

  const auto [cancel, cancel_options] = add("cancel", "End all its parts");
  Define(*cancel, invocation, cancel_options, CancelWorld);
}

}  // namespace sekisho::client
