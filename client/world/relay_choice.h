// SPDX-License-Identifier: Apache-2.0
// The relay that programs over several sites meet at: docs/protocol/15-mpirun.md, "Meeting".  Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "proto/job.pb.h"

namespace sekisho::client {

// Where ranks of several sites meet: at the relay of the one site whose nodes reach no other, else
// of the first that has one.  FailedPrecondition if there is none that all reach.
struct SiteRelay {
  std::string site;
  proto::SiteInfo::Relay relay;
};
absl::StatusOr<SiteRelay> ChooseRelay(const std::vector<SiteRelay>& sites);

}  // namespace sekisho::client
