// SPDX-License-Identifier: Apache-2.0
#include "client/world/show_links.h"

#include <fmt/format.h>

#include "client/site/exit_code.h"
#include "client/site/harmless.h"
#include "client/site/site_call.h"
#include "client/world/world_links.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

using Part = proto::Order::Release::Part;
using Answer = absl::StatusOr<proto::LinksReply>;

awaitable<Answer> Ask(Session& session, const std::string& job_id) {
  proto::LinksRequest request;
  request.set_job_id(job_id);
  co_return co_await session.Call<proto::LinksRequest, proto::LinksReply>(&Session::Async::Links, request);
}

// By the site's name as we know it, else where its leader found it.
awaitable<Answer> AskElsewhere(Loop& loop, const Part& part) {
  CO_ASSIGN_OR_RETURN(const Sites sites, Sites::Load());
  auto target = sites.Resolve(part.site());
  if (!target.ok()) {
    target = sites.Resolve(part.address());
  }
  CO_RETURN_IF_ERROR(target.status());
  CO_ASSIGN_OR_RETURN(auto session, Session::Open(loop, *target));
  co_return co_await Ask(*session.release(), part.job_id());  // lives as long as the process
}

}  // namespace

awaitable<int> ShowLinks(Session& session, const std::string& job_id, bool is_json) {
  const Answer here = co_await Ask(session, job_id);
  if (!here.ok()) {
    co_return Report(here.status());
  }
  std::vector<proto::LinksReply> parts;
  int exit_code = 0;
  for (const Part& part : here->part()) {
    if (part.job_id() == job_id) {
      continue;
    }
    const Answer there = co_await AskElsewhere(session.loop(), part);
    if (there.ok()) {
      parts.push_back(*there);
    } else {
      fmt::print(stderr, "sekisho: without the ranks at {}: {}\n", Harmless(part.site()),
                 Harmless(Message(there.status())));
      exit_code = ExitCodeOf(there.status());
    }
  }
  parts.push_back(*here);
  const WorldLinks links = LinksOf(parts);
  if (is_json) {
    fmt::print("{}\n", ToJson(links).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", Describe(links));
  }
  co_return exit_code;
}

}  // namespace sekisho::client
