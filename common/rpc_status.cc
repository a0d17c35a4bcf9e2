// SPDX-License-Identifier: Apache-2.0
#include "common/rpc_status.h"

#include "common/utf8.h"

namespace sekisho {
namespace {

// gRPC itself has reset the call, when all memory of its quota was in use: the other side's (HTTP/2's ENHANCE_YOUR_CALM),
// or ours.  What we refuse for want of room carries details; what is over a message's limit is no reset.
bool IsResetForMemory(const grpc::Status& status) {
  const std::string& said = status.error_message();
  return status.error_code() == grpc::RESOURCE_EXHAUSTED && status.error_details().empty() &&
         (said.starts_with("Received RST_STREAM") || said.starts_with("Buffers full"));
}

}  // namespace

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
  if (IsResetForMemory(status)) {
    return absl::UnavailableError("there is no memory for the call at this moment");  // nobody has judged it
  }
  // It may be stored and sent on in a message's string, whatever bytes the peer chose.
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), ToUtf8(status.error_message()));
  return status.error_details().empty()
             ? result
             : WithRefusalPayload(std::move(result), ToUtf8(status.error_details()));
}

}  // namespace sekisho
