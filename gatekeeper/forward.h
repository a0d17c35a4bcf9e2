// SPDX-License-Identifier: Apache-2.0
// One call, forwarded message by message without being understood: two reactors, back to back.  A message
// is read from one side only when the other has taken the one before, so flow control reaches from end to
// end.  Runs on gRPC's threads; what it shares between them is atomic.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

namespace sekisho::gatekeeper {

using Metadata = std::vector<std::pair<std::string, std::string>>;

class Forward final : public grpc::ServerGenericBidiReactor {
 public:
  struct Summary {
    grpc::Status status;  // as the client sees it
    uint64_t bytes_in = 0;
    uint64_t bytes_out = 0;
  };
  // Says what the status of a broken inner connection shall be.
  using Translate = std::function<grpc::Status(const grpc::Status&)>;

  // `done` is called last, from any thread, when gRPC has forgotten the call: it may be deleted then.
  Forward(grpc::GenericCallbackServerContext* context, std::function<void(const Summary&)> done);
  ~Forward() override;

  // Exactly one of these, once, from any thread.
  void Refuse(const grpc::Status& status);
  void Start(std::shared_ptr<grpc::Channel> channel, const Metadata& metadata, Translate translate);
  // The client has sent a whole message, or has said that it has none.
  bool was_asked() const { return was_asked_; }
  void Cancel();  // once it was started

 private:
  class Inner;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  void InnerReadsEnded();
  void InnerDone(const grpc::Status& status);

  grpc::GenericCallbackServerContext* const context_;
  std::function<void(const Summary&)> done_;
  std::unique_ptr<Inner> inner_;
  Translate translate_;
  Summary summary_;
  enum class Phase { kNew, kStarted, kCancelled };
  std::atomic<Phase> phase_ = Phase::kNew;  // kStarted: inner_ may be used by any thread
  // Who may use the inner call's sending side.  Its hold is released once, by whoever closes it.
  enum class Writes { kWaiting, kBusy, kClosing, kClosed };
  std::atomic<Writes> writes_ = Writes::kWaiting;
  std::atomic<bool> was_asked_ = false;
  grpc::ByteBuffer to_inner_;
};

}  // namespace sekisho::gatekeeper
