// SPDX-License-Identifier: Apache-2.0
#include "common/rpc_status.h"

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
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  return status.error_details().empty() ? result
                                        : WithRefusalPayload(std::move(result), status.error_details());
}

}  // namespace sekisho
