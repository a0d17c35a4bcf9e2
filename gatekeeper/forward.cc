// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/forward.h"

#include <string_view>

#include "common/call_metadata.h"

namespace sekisho::gatekeeper {
namespace {

// What gRPC itself puts into metadata: each connection makes its own.
bool IsTransport(std::string_view key) {
  return key.starts_with("grpc-") || key.starts_with(":") || key == "user-agent" || key == "te" ||
         key == "content-type";
}

std::string Text(const grpc::string_ref& text) { return {text.data(), text.size()}; }

}  // namespace

// The call to the inside.  Two holds keep it from ending while a read cycle or a write cycle may still
// start an operation on it.
class Forward::Inner final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Inner(Forward& outer, std::shared_ptr<grpc::Channel> channel) : outer_(outer), stub_(channel) {}

  void OnReadInitialMetadataDone(bool ok) override {
    if (ok) {
      for (const auto& [key, value] : context_.GetServerInitialMetadata()) {
        if (!IsTransport({key.data(), key.size()})) {
          outer_.context_->AddInitialMetadata(Text(key), Text(value));
        }
      }
      outer_.StartSendInitialMetadata();
    }
    StartRead(&from_inner_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) {
      outer_.InnerReadsEnded();
      RemoveHold();
      return;
    }
    outer_.summary_.bytes_out += from_inner_.Length();
    outer_.StartWrite(&from_inner_);
  }
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override { outer_.InnerDone(status); }

  Forward& outer_;
  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  grpc::ByteBuffer from_inner_;
};

Forward::Forward(grpc::GenericCallbackServerContext* context,
                 std::function<void(const Summary&)> done)
    : context_(context), done_(std::move(done)) {}

Forward::~Forward() = default;

void Forward::Refuse(const grpc::Status& status) {
  summary_.status = status;
  Finish(status);
}

void Forward::Start(std::shared_ptr<grpc::Channel> channel, const Metadata& metadata,
                    Translate translate) {
  translate_ = std::move(translate);
  inner_ = std::make_unique<Inner>(*this, std::move(channel));
  for (const auto& [key, value] : context_->client_metadata()) {
    const std::string name = Text(key);
    if (!IsTransport(name) && !name.starts_with(metadata::kPrefix)) {
      inner_->context_.AddMetadata(name, Text(value));
    }
  }
  for (const auto& [key, value] : metadata) {
    inner_->context_.AddMetadata(key, value);
  }
  inner_->context_.set_deadline(context_->deadline());
  inner_->stub_.PrepareBidiStreamingCall(&inner_->context_, context_->method(), {}, inner_.get());
  inner_->AddMultipleHolds(2);
  Phase expected = Phase::kNew;
  if (!phase_.compare_exchange_strong(expected, Phase::kStarted)) {
    inner_->context_.TryCancel();  // OnCancel came before there was anything to cancel
  }
  StartRead(&to_inner_);
  inner_->StartCall();  // last: when it returns, the call may be over and this object gone
}

void Forward::Cancel() { inner_->context_.TryCancel(); }

// From the client, and on to the inside.
void Forward::OnReadDone(bool ok) {
  was_asked_ = true;
  Writes expected = Writes::kWaiting;
  if (!writes_.compare_exchange_strong(expected, Writes::kBusy)) {
    return;  // the inner call is over: nobody wants this message
  }
  if (ok) {
    summary_.bytes_in += to_inner_.Length();
    inner_->StartWrite(&to_inner_);
    return;
  }
  inner_->StartWritesDone();
  writes_ = Writes::kClosed;
  inner_->RemoveHold();
}

void Forward::Inner::OnWriteDone(bool ok) {
  Writes expected = Writes::kBusy;
  if (ok && outer_.writes_.compare_exchange_strong(expected, Writes::kWaiting)) {
    outer_.StartRead(&outer_.to_inner_);
    return;
  }
  outer_.writes_ = Writes::kClosed;
  RemoveHold();
}

// The inside has sent its last message.  If we only wait for the client's next one, nobody will: the
// sending side is released here; if a write is under way, its end releases it.
void Forward::InnerReadsEnded() {
  Writes expected = Writes::kWaiting;
  if (writes_.compare_exchange_strong(expected, Writes::kClosed)) {
    inner_->RemoveHold();
    return;
  }
  expected = Writes::kBusy;
  writes_.compare_exchange_strong(expected, Writes::kClosing);
}

// To the client.
void Forward::OnWriteDone(bool ok) {
  if (!ok) {
    inner_->context_.TryCancel();
  }
  inner_->StartRead(&inner_->from_inner_);
}

void Forward::InnerDone(const grpc::Status& status) {
  for (const auto& [key, value] : inner_->context_.GetServerTrailingMetadata()) {
    if (!IsTransport({key.data(), key.size()})) {
      context_->AddTrailingMetadata(Text(key), Text(value));
    }
  }
  summary_.status = translate_(status);
  Finish(summary_.status);
}

void Forward::OnCancel() {
  Phase expected = Phase::kNew;
  if (!phase_.compare_exchange_strong(expected, Phase::kCancelled) && expected == Phase::kStarted) {
    inner_->context_.TryCancel();
  }
}

void Forward::OnDone() {
  const auto done = std::exchange(done_, nullptr);
  done(summary_);
}

}  // namespace sekisho::gatekeeper
