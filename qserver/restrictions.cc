// SPDX-License-Identifier: Apache-2.0
#include "qserver/restrictions.h"

#include <fmt/format.h>

#include "common/identity/dn.h"
#include "qserver/administer_errors.h"

namespace sekisho::qserver {

absl::Status Restrictions::Restore(const std::string& bytes) {
  proto::AdministerReply stored;
  if (!stored.ParseFromString(bytes)) {
    return absl::DataLossError("what administrators have forbidden cannot be read from the database");
  }
  for (Banned& banned : *stored.mutable_banned()) {
    Ban(std::move(banned));
  }
  for (Drained& drained : *stored.mutable_drained()) {
    Drain(std::move(drained));
  }
  return absl::OkStatus();
}

void Restrictions::Ban(Banned banned) {
  const std::string key = identity::NormalizeDn(banned.subject());
  banned_[key] = std::move(banned);
}

bool Restrictions::LiftBan(const std::string& subject) { return banned_.erase(identity::NormalizeDn(subject)) > 0; }

void Restrictions::Drain(Drained drained) {
  const std::string key = drained.node();
  drained_[key] = std::move(drained);
}

bool Restrictions::LiftDrain(const std::string& node) { return drained_.erase(node) > 0; }

absl::Status Restrictions::Check(const std::string& subject) const {
  const auto at = banned_.find(identity::NormalizeDn(subject));
  return at == banned_.end() ? absl::OkStatus() : errors::IsBanned(subject, at->second.reason());
}

std::string Restrictions::WhyDrained(const std::string& node) const {
  auto at = drained_.find("");
  if (at == drained_.end()) {
    at = drained_.find(node);
  }
  if (at == drained_.end()) {
    return "";
  }
  const Drained& drained = at->second;
  return fmt::format("{} drained by {}{}{}", drained.node().empty() ? "the site is" : "the node is", drained.by(),
                     drained.reason().empty() ? "" : ": ", drained.reason());
}

proto::AdministerReply Restrictions::Show() const {
  proto::AdministerReply all;
  for (const auto& [subject, banned] : banned_) {
    *all.add_banned() = banned;
  }
  for (const auto& [node, drained] : drained_) {
    *all.add_drained() = drained;
  }
  return all;
}

}  // namespace sekisho::qserver
