// SPDX-License-Identifier: Apache-2.0
// sekisho sites: what sites publish in the directory; without one, and of one site besides, what they say
// themselves.
#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/verbs/admin_text.h"
#include "client/job/job_text.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "client/verbs/published.h"
#include "client/verbs/verbs.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

struct SitesOptions {
  std::string site;
  std::string where;
  bool is_live = false;
  bool is_json = false;
};

struct SiteAnswer {
  std::string name;
  std::string contact;
  absl::StatusOr<proto::SiteInfo> info = absl::UnknownError("not asked");
};

awaitable<int> Ask(Session& session, SiteAnswer& answer) {
  answer.info =
      co_await session.Call<proto::SiteRequest, proto::SiteInfo>(&Session::Async::Site, proto::SiteRequest());
  co_return 0;
}

SiteAnswer AskSite(const Sites& sites, const std::string& name) {
  SiteAnswer answer{name, "", absl::UnknownError("")};
  const auto target = sites.Resolve(name);
  if (!target.ok()) {
    answer.info = target.status();
    return answer;
  }
  answer.contact = target->contact.Address();
  Loop& loop = NewLoop();
  const auto session = Session::Open(loop, *target);
  if (!session.ok()) {
    answer.info = session.status();
    return answer;
  }
  RunOnLoop(loop, Ask(**session, answer));
  return answer;
}

struct Slots {
  int total = 0, busy = 0, up = 0;
  std::set<int> clocks;
};

Slots Count(const proto::SiteInfo& info) {
  Slots slots;
  for (const auto& node : info.node()) {
    slots.clocks.insert(node.clock_mhz());
    if (node.is_up()) {
      ++slots.up;
      slots.total += node.processors();
      slots.busy += node.busy();
    }
  }
  return slots;
}

nlohmann::json ToJson(const SiteAnswer& answer) {
  nlohmann::json json = {{"site", answer.name}, {"contact", answer.contact}, {"is_up", answer.info.ok()}};
  if (!answer.info.ok()) {
    json["reason"] = Message(answer.info.status());
    return json;
  }
  const Slots slots = Count(*answer.info);
  json["version"] = answer.info->version();
  json["account"] = answer.info->account();
  json["slots_total"] = slots.total;
  json["slots_free"] = slots.total - slots.busy;
  json["queued_jobs"] = answer.info->queued_jobs();
  json["running_jobs"] = answer.info->running_jobs();
  json["services"] = std::vector<std::string>(answer.info->service().begin(), answer.info->service().end());
  json["queues"] = std::vector<std::string>(answer.info->queue().begin(), answer.info->queue().end());
  json["drained"] = answer.info->drained();
  json["relay"] = {{"address", answer.info->relay().address()}, {"is_only_way", answer.info->relay().is_only_way()}};
  json["nodes"] = nlohmann::json::array();
  for (const auto& node : answer.info->node()) {
    json["nodes"].push_back({{"name", node.name()},
                             {"resource", node.resource()},
                             {"is_up", node.is_up()},
                             {"state", NodeStateName(node)},
                             {"processors", node.processors()},
                             {"busy", node.busy()},
                             {"clock_mhz", node.clock_mhz()},
                             {"architecture", node.architecture()},
                             {"memory_mb", node.memory_mb()},
                             {"os", node.os()},
                             {"load", node.load()}});
  }
  return json;
}

std::string SitesTable(const std::vector<SiteAnswer>& answers) {
  std::vector<std::vector<std::string>> rows = {
      {"SITE", "CONTACT", "STATE", "FREE/SLOTS", "NODES", "RUNNING", "QUEUED", "CLOCK", "ACCOUNT"}};
  for (const auto& answer : answers) {
    if (!answer.info.ok()) {
      rows.push_back({answer.name, answer.contact, "down", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const Slots slots = Count(*answer.info);
    rows.push_back({answer.name, answer.contact, "up", fmt::format("{}/{}", slots.total - slots.busy, slots.total),
                    fmt::format("{}/{}", slots.up, answer.info->node_size()),
                    std::to_string(answer.info->running_jobs()), std::to_string(answer.info->queued_jobs()),
                    fmt::format("{} MHz", fmt::join(slots.clocks, ",")), answer.info->account()});
  }
  return Columns(rows);
}

std::string NodesTable(const proto::SiteInfo& info) {
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "RESOURCE", "STATE", "FREE/SLOTS", "CLOCK", "ARCH", "MEMORY", "LOAD"}};
  for (const auto& node : info.node()) {
    rows.push_back({node.name(), node.resource(), NodeStateName(node),
                    fmt::format("{}/{}", node.processors() - node.busy(), node.processors()),
                    fmt::format("{} MHz", node.clock_mhz()), node.architecture(),
                    node.memory_mb() > 0 ? fmt::format("{} MB", node.memory_mb()) : "-",
                    fmt::format("{:.2f}", node.load())});
  }
  return Columns(rows);
}

// All sites, by one question to the directory.
int PrintPublished(const std::vector<glue::Offer>& offers, const glue::Where& where, bool is_json) {
  const int64_t now_s = NowMs() / 1000;
  const auto selected = Select(offers, where, now_s);
  if (is_json) {
    fmt::print("{}\n", PublishedJson(selected, now_s).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", PublishedTable(selected, now_s));
  }
  return 0;
}

// What the directory says of the one site, if it knows it.
std::vector<glue::Offer> OfferOf(const std::vector<glue::Offer>& offers, const std::string& site) {
  std::vector<glue::Offer> found;
  std::copy_if(offers.begin(), offers.end(), std::back_inserter(found),
               [&](const glue::Offer& offer) { return offer.site == site; });
  return found;
}

int AskThemselves(const Sites& sites, const SitesOptions& options, const std::vector<glue::Offer>& offers) {
  const std::vector<std::string> names =
      options.site.empty() ? sites.Names() : std::vector<std::string>{options.site};
  if (names.empty()) {
    return Report(Refuse(absl::StatusCode::kInvalidArgument, 0, "no site is known",
                         "name a site or a contact, write sites.json, or set GRID_INFO_HOST"));
  }
  std::vector<SiteAnswer> answers;
  for (const std::string& name : names) {
    answers.push_back(AskSite(sites, name));
  }
  int exit_code = 0;
  for (const auto& answer : answers) {
    if (!answer.info.ok()) {
      const int code = Report(answer.info.status());
      exit_code = exit_code != 0 ? exit_code : code;
    }
  }
  if (options.is_json) {
    auto json = nlohmann::json::array();
    for (const auto& answer : answers) {
      json.push_back(ToJson(answer));
      if (const auto published = OfferOf(offers, answer.name); !published.empty()) {
        const int64_t now_s = NowMs() / 1000;
        json.back()["published"] = PublishedJson(Select(published, {}, now_s), now_s)[0];
      }
    }
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return exit_code;
  }
  fmt::print("{}", SitesTable(answers));
  if (!options.site.empty() && answers[0].info.ok()) {
    const auto& info = *answers[0].info;
    fmt::print("\n{}\nservices  {}\nqueues    {}\nversion   {}\n", NodesTable(info),
               Harmless(fmt::format("{}", fmt::join(info.service(), " "))),
               Harmless(fmt::format("{}", fmt::join(info.queue(), " "))), Harmless(info.version()));
  }
  for (const glue::Offer& offer : OfferOf(offers, options.site)) {
    fmt::print("\n{}", HarmlessLines(PublishedInFull(offer, NowMs() / 1000)));
  }
  return exit_code;
}

int SitesVerb(const SitesOptions& options) {
  const auto where = options.where.empty() ? absl::StatusOr<glue::Where>(glue::Where()) : glue::Where::Parse(options.where);
  if (!where.ok()) {
    return Report(absl::InvalidArgumentError("--where: " + Message(where.status())));
  }
  const auto sites = Sites::Load();
  if (!sites.ok()) {
    return Report(sites.status());
  }
  std::vector<glue::Offer> offers;
  if (sites->directory() && !options.is_live) {
    auto published = AskDirectory(*sites->directory());
    if (published.ok() && options.site.empty()) {
      return PrintPublished(*published, *where, options.is_json);
    }
    if (published.ok()) {
      offers = *std::move(published);
    } else if (!options.where.empty()) {
      return Report(published.status());
    } else {
      fmt::print(stderr, "sekisho: {}; asking the sites\n", Harmless(Message(published.status())));
    }
  } else if (!options.where.empty()) {
    return Report(Refuse(absl::StatusCode::kInvalidArgument, 0, "--where chooses among what a directory says; there is none",
                         "name it in sites.json, \"directory\", or set GRID_INFO_HOST"));
  }
  return AskThemselves(*sites, options, offers);
}

}  // namespace

void AddSitesVerb(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<SitesOptions>();
  auto* verb = app.add_subcommand("sites", "The sites you can use, and what is free there");
  verb->add_option("SITE", options->site, "Only this one, in full: what it publishes, and its nodes as it says itself");
  verb->add_option("--where", options->where,
                   "Only what meets a condition, e.g. 'freeslots>=8 && arch==amd64'; of " +
                       fmt::format("{}", fmt::join(glue::FactNames(), " ")));
  verb->add_flag("--live", options->is_live, "Ask the sites themselves, not the directory");
  verb->add_flag("--json", options->is_json, "Print JSON");
  verb->callback([options, &invocation] { invocation.exit_code = SitesVerb(*options); });
}

}  // namespace sekisho::client
