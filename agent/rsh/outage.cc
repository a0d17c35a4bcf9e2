// SPDX-License-Identifier: Apache-2.0
#include "agent/rsh/outage.h"

namespace sekisho::agent::rsh {

bool IsBreak(const absl::Status& status) {
  return status.ok() || absl::IsUnavailable(status) || absl::IsCancelled(status) ||
         absl::IsUnknown(status) ||
         absl::IsInternal(status);  // gRPC's, of a stream that broke: the agent says neither
}

bool Outage::OnBreak(Clock::time_point now) {
  since_ = since_.value_or(now);
  if (is_told_ || now - *since_ < kToldAfter) {
    return false;
  }
  is_told_ = true;
  return true;
}

}  // namespace sekisho::agent::rsh
