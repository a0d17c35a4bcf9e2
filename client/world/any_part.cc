// SPDX-License-Identifier: Apache-2.0
#include "client/world/any_part.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "client/site/any_site.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "client/site/sites.h"
#include "client/world/world_plan.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

void Take(std::optional<int64_t>& free, int64_t& slots) {
  const int64_t taken = std::min(free.value_or(0), slots);
  free = free ? std::optional(*free - taken) : free;
  slots -= taken;
}

// The site spreads a part over its nodes as it likes; here over one kind of nodes after the other.
void TakeSlots(glue::Offer& offer, int64_t slots) {
  for (glue::Share& share : offer.shares) {
    int64_t left = slots;
    Take(share.free_slots, left);
  }
  for (glue::Environment& environment : offer.environments) {
    Take(environment.free_slots, slots);
  }
}

// A world's parts are started by agents, in the site's default queue or that of the request.
void DropOtherServices(std::vector<glue::Offer>& offers) {
  for (glue::Offer& offer : offers) {
    std::erase_if(offer.shares, [](const glue::Share& share) { return share.service.starts_with("jobmanager-slurm"); });
  }
}

}  // namespace

absl::StatusOr<std::vector<RankRange>> PlaceAnyParts(std::vector<RankRange> parts, glue::Demand demand,
                                                     std::vector<glue::Offer> offers, const glue::Where& where,
                                                     int64_t now_s, const glue::Distance& distance, std::string* why) {
  DropOtherServices(offers);
  const auto take = [&](const std::string& place, int slots) {
    for (glue::Offer& offer : offers) {
      if (offer.site == place || offer.contact == place) {
        TakeSlots(offer, slots);
      }
    }
  };
  for (const RankRange& part : parts) {
    take(part.contact, part.count);  // "any" is no site's name
  }
  for (RankRange& part : parts) {
    if (part.contact != kAnySite) {
      continue;
    }
    demand.processes = part.count;
    const glue::Choice choice = glue::Choose(offers, demand, where, now_s, distance);
    const std::string ranks = fmt::format("ranks {} to {}", part.first, part.first + part.count - 1);
    if (why != nullptr) {
      *why += fmt::format("{}:\n{}", ranks, glue::Explain(choice));
    }
    if (choice.candidates.empty()) {
      const absl::Status nobody = NobodyTakesIt(choice);
      return Refuse(nobody.code(), GramCode(nobody), fmt::format("{}: {}", ranks, Message(nobody)), Remedy(nobody));
    }
    part.contact = choice.candidates.front().offer->site;
    if (why != nullptr) {
      *why += fmt::format("chosen: {}\n", part.contact);
    }
    take(part.contact, part.count);
  }
  return parts;
}

absl::StatusOr<std::vector<RankRange>> PlaceAnyParts(std::vector<RankRange> parts, const JobOptions& job,
                                                     const AnyPartOptions& options) {
  if (std::none_of(parts.begin(), parts.end(), [](const RankRange& part) { return part.contact == kAnySite; })) {
    return parts;
  }
  const auto where = options.where.empty() ? absl::StatusOr<glue::Where>(glue::Where()) : glue::Where::Parse(options.where);
  if (!where.ok()) {
    return absl::InvalidArgumentError("--where: " + Message(where.status()));
  }
  ASSIGN_OR_RETURN(const Sites sites, Sites::Load());
  if (!sites.directory()) {
    return NoDirectory();
  }
  ASSIGN_OR_RETURN(const std::string rsl, PartRsl(job, parts.front()));
  ASSIGN_OR_RETURN(const rsl::JobDescription described, rsl::ParseAndDescribe(rsl, {}));
  ASSIGN_OR_RETURN(const std::vector<glue::Offer> offers, AskDirectory(*sites.directory()));
  glue::Demand demand = DemandOf(described, OwnSubject());
  demand.needs_mpi = true;
  std::string why;
  auto placed = PlaceAnyParts(std::move(parts), std::move(demand), offers, *where, NowMs() / 1000,
                              glue::DistanceFrom(sites.near(), offers), &why);
  if (options.says_why) {
    fmt::print(stderr, "{}", HarmlessLines(why));
  }
  return placed;
}

}  // namespace sekisho::client
