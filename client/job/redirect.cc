// SPDX-License-Identifier: Apache-2.0
#include "client/job/redirect.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "client/site/until_judged.h"
#include "rsl/job_description.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::client {
namespace {

// All but `restart` has a meaning in an update too.
void RemoveRestart(rsl::Spec& spec) {
  std::for_each(spec.children.begin(), spec.children.end(), RemoveRestart);
  std::erase_if(spec.children, [](const rsl::Spec& child) {
    return child.kind == rsl::Spec::Kind::kRelation ? rsl::Canonical(child.relation.attribute) == "restart"
                                                    : child.children.empty();
  });
}

bool IsOfOutput(const rsl::Spec& spec) {
  constexpr std::string_view kNames[] = {"stdout", "stderr", "stdoutposition", "stderrposition"};
  return spec.kind == rsl::Spec::Kind::kRelation
             ? std::find(std::begin(kNames), std::end(kNames), rsl::Canonical(spec.relation.attribute)) != std::end(kNames)
             : std::any_of(spec.children.begin(), spec.children.end(), IsOfOutput);
}

}  // namespace

absl::Status CheckUpdate(const std::string& update) {
  const auto described = rsl::ParseAndDescribe(update, rsl::UnknownSiteVariables(), rsl::Use::kStdioUpdate);
  if (!described.ok()) {
    return rsl::ToStatus(described.error());
  }
  const std::vector<rsl::Error> unsupported = rsl::Unsupported(*described);
  return unsupported.empty() ? absl::OkStatus() : rsl::ToStatus(unsupported[0]);
}

std::optional<std::string> UpdateIn(const std::string& restart) {
  auto spec = rsl::Parse(restart);
  if (!spec.ok() || !IsOfOutput(*spec)) {
    return std::nullopt;
  }
  RemoveRestart(*spec);
  return rsl::Print(*spec);
}

awaitable<absl::Status> Redirect(Session& session, std::string job_id, std::string update) {
  proto::RequestBody body;
  body.mutable_signal()->set_job_id(job_id);
  body.mutable_signal()->set_number(kStdioUpdate);
  body.mutable_signal()->set_argument(update);
  co_return (co_await Command(session, std::move(body))).status();
}

}  // namespace sekisho::client
