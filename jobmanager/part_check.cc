// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/part_check.h"

#include <fmt/format.h>

#include "jobmanager/errors.h"

namespace sekisho::jobmanager {

absl::Status CheckPart(const proto::LeadRequest::Part& part, const std::string& world, int number, bool is_held) {
  proto::RequestBody body;
  if (!body.ParseFromString(part.submit().body()) || !body.submit().has_charter()) {
    return errors::Malformed(fmt::format("part {} has no charter", number));
  }
  const proto::Charter& charter = body.submit().charter();
  if (charter.world() != world) {
    return errors::Malformed(fmt::format("the charter of part {} is for another world", number));
  }
  if (part.count() < 1 || part.count() > kRanksOfAPart) {
    return errors::Malformed(
        fmt::format("part {} has {} ranks, expected 1 to {}", number, part.count(), kRanksOfAPart));
  }
  if (charter.label().size() > kLabelMost) {
    return errors::Malformed(fmt::format("part {} has a label of {} bytes, expected at most {}", number,
                                         charter.label().size(), kLabelMost));
  }
  if (charter.rank_size() == 0) {
    return absl::OkStatus();
  }
  if (charter.rank_size() != part.count()) {
    return errors::Malformed(
        fmt::format("part {} has {} ranks, and an order of {}", number, part.count(), charter.rank_size()));
  }
  // Numbers that stand in charters cannot be given anew.
  if (is_held || charter.start() != proto::Charter::STRICT_BARRIER) {
    return errors::Malformed(
        fmt::format("part {} has an order of its ranks: its world cannot be edited, nor do without it", number));
  }
  return absl::OkStatus();
}

}  // namespace sekisho::jobmanager
