// SPDX-License-Identifier: Apache-2.0
// A server that judges who calls before it reads what he says.
//
// gRPC reads the message of a call with one request before its handler runs: a stranger could have it hold
// many of the largest ones.  What it asks with the headers alone, at the gate, it asks before.
#pragma once

#include <functional>
#include <memory>

#include <grpcpp/security/auth_metadata_processor.h>

#include "common/tls/peer_verifier.h"

namespace sekisho::tls {

using CallMetadata = grpc::AuthMetadataProcessor::InputMetadata;

// Called on gRPC's threads, for each call.  An error ends the call; its remedy travels in the message, for at
// the gate gRPC sends no details.
using JudgeCall = std::function<absl::Status(const grpc::AuthContext& peer, const CallMetadata& metadata)>;

std::shared_ptr<grpc::ServerCredentials> GatedCredentials(const identity::Credential& host, JudgeCall judge);

}  // namespace sekisho::tls
