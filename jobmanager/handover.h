// SPDX-License-Identifier: Apache-2.0
// The jobmanager's end of proto/handover.proto.
#pragma once

#include "common/loop.h"
#include "common/status.h"
#include "proto/handover.pb.h"

namespace sekisho::jobmanager {

// Makes this process undumpable, then asks the gatekeeper for what it needs.  Blocks: before anything else.
absl::StatusOr<proto::Handover> ReceiveHandover(int control_fd);

absl::Status TellReady(int control_fd);

// Returns when the gatekeeper's end is closed.
awaitable<void> WaitForGatekeeper(Loop& loop, int control_fd);

}  // namespace sekisho::jobmanager
