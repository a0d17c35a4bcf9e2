// SPDX-License-Identifier: Apache-2.0
// Whether a part that a user hands to a leader can be one: what its charter says is checked by its site, how the
// leader counts with it is checked here.  Pure.
#pragma once

#include <string>

#include "common/status.h"
#include "proto/world.pb.h"

namespace sekisho::jobmanager {

inline constexpr int kPartsMost = 1024;
inline constexpr int kRanksOfAPart = 100'000;
inline constexpr size_t kLabelMost = 256;  // it is part of what is said of the part

// As number `number` of world `world`; `is_held`: the world's parts may be edited.
absl::Status CheckPart(const proto::LeadRequest::Part& part, const std::string& world, int number, bool is_held);

}  // namespace sekisho::jobmanager
