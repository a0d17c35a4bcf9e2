// SPDX-License-Identifier: Apache-2.0
// The one conversion between our errors and gRPC's: codes are equal; code, reason and remedy survive.
#pragma once

#include <grpcpp/support/status.h>

#include "common/refusal.h"

namespace sekisho {

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace sekisho
