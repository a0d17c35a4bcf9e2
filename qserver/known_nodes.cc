// SPDX-License-Identifier: Apache-2.0
#include "qserver/known_nodes.h"

#include <sstream>

#include "qserver/errors.h"

namespace sekisho::qserver {
namespace {

constexpr char kName[] = "nodes";  // "\n" and a line each

}  // namespace

absl::Status KnownNodes::Restore() {
  ASSIGN_OR_RETURN(const std::string text, store_.Value(kName));
  if (!text.empty()) {
    std::istringstream lines(text);
    names_.emplace();
    for (std::string name; lines >> name;) {
      names_->insert(name);
    }
  }
  return absl::OkStatus();
}

awaitable<absl::Status> KnownNodes::Learn(proto::InventoryReply inventory) {
  std::set<std::string> names;
  for (const proto::NodeInfo& node : inventory.node()) {
    names.insert(node.name());
  }
  if (names_ == names) {
    co_return absl::OkStatus();
  }
  std::string text = "\n";
  for (const std::string& name : names) {
    text += name + "\n";
  }
  store_.Put(kName, text);
  names_ = std::move(names);
  co_return co_await store_.Flush();
}

absl::Status KnownNodes::Check(const std::string& node) const {
  if (!names_) {
    return errors::NodesNotKnownYet();
  }
  return names_->count(node) > 0 ? absl::OkStatus() : errors::NotInTheInventory(node);
}

}  // namespace sekisho::qserver
