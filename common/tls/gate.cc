// SPDX-License-Identifier: Apache-2.0
#include "common/tls/gate.h"

#include <utility>

#include <fmt/format.h>

#include "common/refusal.h"

namespace sekisho::tls {
namespace {

class Gate final : public grpc::AuthMetadataProcessor {
 public:
  explicit Gate(JudgeCall judge) : judge_(std::move(judge)) {}

  // On the thread that has read the headers: a thread for each call would be a stranger's to take.
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* peer, OutputMetadata*,
                       OutputMetadata*) override {
    const absl::Status status = judge_(*peer, metadata);
    if (status.ok()) {
      return grpc::Status::OK;
    }
    const std::string remedy = Remedy(status);
    return {static_cast<grpc::StatusCode>(status.code()),
            remedy.empty() ? Message(status) : fmt::format("{} ({})", Message(status), remedy)};
  }

 private:
  const JudgeCall judge_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> GatedCredentials(const identity::Credential& host, JudgeCall judge) {
  auto credentials = ServerCredentials(host);
  credentials->SetAuthMetadataProcessor(std::make_shared<Gate>(std::move(judge)));
  return credentials;
}

}  // namespace sekisho::tls
