// SPDX-License-Identifier: Apache-2.0
// What the site's administrators have forbidden until they say otherwise: subjects that are banned, nodes that are
// drained, or the whole site.  docs/protocol/5-queue.md, "Administration".  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/status.h"
#include "proto/job.pb.h"

namespace sekisho::qserver {

class Restrictions {
 public:
  using Banned = proto::AdministerReply::Banned;
  using Drained = proto::AdministerReply::Drained;

  // As it is stored.
  std::string Bytes() const { return Show().SerializeAsString(); }
  absl::Status Restore(const std::string& bytes);

  // Later words replace earlier ones; false: there was nothing to lift.
  void Ban(Banned banned);
  bool LiftBan(const std::string& subject);
  void Drain(Drained drained);  // no node: the site
  bool LiftDrain(const std::string& node);

  // PermissionDenied, with the administrator's reason, if it is banned.
  absl::Status Check(const std::string& subject) const;
  bool IsDrained(const std::string& node) const { return IsSiteDrained() || drained_.count(node) > 0; }
  bool IsSiteDrained() const { return drained_.count("") > 0; }
  // Why nothing starts on the node; "": it does.  Of the site: node "".
  std::string WhyDrained(const std::string& node) const;

  // All of them, by subject and by node.
  proto::AdministerReply Show() const;

 private:
  std::map<std::string, Banned> banned_;    // by normalized subject
  std::map<std::string, Drained> drained_;  // by node; "": the site
};

}  // namespace sekisho::qserver
