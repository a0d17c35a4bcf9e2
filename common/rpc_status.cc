// SPDX-License-Identifier: Apache-2.0
#include "common/rpc_status.h"

#include "common/utf8.h"

namespace sekisho {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), Message(status),
                      RefusalPayload(status));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) {
    return absl::OkStatus();
  }
  // It may be stored and sent on in a message's string, whatever bytes the peer chose.
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), ToUtf8(status.error_message()));
  return status.error_details().empty()
             ? result
             : WithRefusalPayload(std::move(result), ToUtf8(status.error_details()));
}

}  // namespace sekisho
