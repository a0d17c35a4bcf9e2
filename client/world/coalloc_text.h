// SPDX-License-Identifier: Apache-2.0
// A held world as `sekisho coalloc` shows and names it.  Pure.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "common/status.h"
#include "proto/coalloc.pb.h"

namespace sekisho::client {

// SITE/WORLD, as `mpirun --hold` prints it; SITE may be a contact.
struct WorldName {
  std::string site;
  std::string world;
};
absl::StatusOr<WorldName> ParseWorldName(const std::string& text);

// A part's label, its number, or the site of the only part there.  Labels and sites are those of parts that were not dropped.
absl::StatusOr<int> PartNamed(const proto::CoallocReply& world, const std::string& text);

std::string StartTypeName(proto::Charter::StartType type);

// A line for each part, and one for all.
std::string Describe(const proto::CoallocReply& world);
nlohmann::json ToJson(const std::string& name, const proto::CoallocReply& world);

}  // namespace sekisho::client
