// SPDX-License-Identifier: Apache-2.0
// Machine files may say "any" for a site: such a part goes where the directory knows room for it.
// docs/protocol/16-directory.md, "Choosing a site".
#pragma once

#include <string>
#include <vector>

#include "client/job/request.h"
#include "client/world/machine_file.h"
#include "glue/broker.h"

namespace sekisho::client {

struct AnyPartOptions {
  std::string where;  // conditions on the sites
  bool says_why = false;
};

// Asks the directory, if a part says "any".  FailedPrecondition if there is a part that no site can run.
absl::StatusOr<std::vector<RankRange>> PlaceAnyParts(std::vector<RankRange> parts, const JobOptions& job,
                                                     const AnyPartOptions& options);

// The same, given what is asked of every part and what the directory says; pure.  What the named parts and the
// earlier ones take is not free for the later.  `demand.processes` is not read: a part's ranks count.
// `why`, if set, gets the choice of each part as --why prints it.
absl::StatusOr<std::vector<RankRange>> PlaceAnyParts(std::vector<RankRange> parts, glue::Demand demand,
                                                     std::vector<glue::Offer> offers, const glue::Where& where,
                                                     int64_t now_s, const glue::Distance& distance, std::string* why);

}  // namespace sekisho::client
