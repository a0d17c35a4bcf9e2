// SPDX-License-Identifier: Apache-2.0
// Whether a job could run at all on an empty site, and if not, why.  Pure.
#pragma once

#include <optional>
#include <vector>

#include "allocator/match.h"
#include "allocator/usage.h"

namespace sekisho::allocator {

// A resource on which the job could run, empty and with all nodes up.
struct Fit {
  size_t resource = 0;
  Shape shape;
};

// Whether the demand makes sense by itself.
absl::Status CheckDemand(const proto::Demand& demand);

std::optional<Fit> FitOf(const Resource& resource, const std::vector<NodeFacts>& facts,
                         const proto::Demand& demand);

// The reason, for a demand that fits nowhere; `facts` by resource.
absl::Status WhyNever(const Inventory& inventory,
                      const std::vector<const std::vector<NodeFacts>*>& facts,
                      const proto::Demand& demand);

}  // namespace sekisho::allocator
