// SPDX-License-Identifier: Apache-2.0
// The jobmanager's end of proto/handover.proto.
#pragma once

#include <functional>

#include "common/loop.h"
#include "common/status.h"
#include "proto/handover.pb.h"

namespace sekisho::jobmanager {

// Makes this process undumpable, then asks the gatekeeper for what it needs.  Blocks: before anything else.
absl::StatusOr<proto::Handover> ReceiveHandover(int control_fd);

absl::Status TellReady(int control_fd);

// That it shall give us no more calls, and close their connection when those that run are over.
void TellStopping(int control_fd);

// Hands on each later Handover, with a credential that lasts longer.  Returns when the gatekeeper's end is
// closed.
awaitable<void> AttendGatekeeper(Loop& loop, int control_fd, std::function<void(const proto::Handover&)> renew);

}  // namespace sekisho::jobmanager
