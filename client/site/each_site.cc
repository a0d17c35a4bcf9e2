// SPDX-License-Identifier: Apache-2.0
#include "client/site/each_site.h"

#include <algorithm>

#include "client/job/elements.h"
#include "client/site/site_call.h"

namespace sekisho::client {
namespace {

using AskMany = std::function<awaitable<Codes>(Session&, std::vector<std::string>)>;

struct AtSite {
  Target target;
  std::vector<std::string> ids;
  std::vector<size_t> places;  // among all
};

AtSite& SiteOf(const Target& target, std::vector<AtSite>& sites) {
  const auto at = std::find_if(sites.begin(), sites.end(), [&](const AtSite& site) {
    return site.target.contact.Address() == target.contact.Address() && site.target.site == target.site;
  });
  return at != sites.end() ? *at : sites.emplace_back(AtSite{target, {}, {}});
}

awaitable<int> AskSite(Session& session, const AskMany& ask, const AtSite& site, Codes& codes) {
  const Codes own = co_await ask(session, site.ids);
  for (size_t i = 0; i < site.places.size(); ++i) {
    codes[site.places[i]] = own[i];
  }
  co_return 0;
}

}  // namespace

int ForEachSite(const std::vector<std::string>& jobs, const AskMany& ask) {
  const auto known = Sites::Load();
  if (!known.ok()) {
    return Report(known.status());
  }
  const auto names = ExpandElements(jobs);
  if (!names.ok()) {
    return Report(names.status());
  }
  Codes codes(names->size(), 0);
  std::vector<AtSite> sites;
  for (size_t i = 0; i < names->size(); ++i) {
    const auto job = known->ResolveJob((*names)[i]);
    if (!job.ok()) {
      codes[i] = Report(job.status());
      continue;
    }
    AtSite& site = SiteOf(job->target, sites);
    site.ids.push_back(job->id);
    site.places.push_back(i);
  }
  for (const AtSite& site : sites) {
    const int code =
        WithTarget(site.target, [&](Session& session) { return AskSite(session, ask, site, codes); });
    for (const size_t place : site.places) {
      codes[place] = code != 0 ? code : codes[place];
    }
  }
  return FirstBad(codes);
}

}  // namespace sekisho::client
