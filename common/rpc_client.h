// SPDX-License-Identifier: Apache-2.0
// Making gRPC calls from coroutines on the loop: the twin of rpc_server.h.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include "common/loop.h"
#include "common/rpc_status.h"
#include "common/rpc_stream.h"

namespace sekisho::rpc {

struct CallOptions {
  std::chrono::milliseconds timeout{0};  // 0 = none
  bool wait_for_ready = false;           // wait for the connection instead of failing at once
  std::vector<std::pair<std::string, std::string>> metadata;
};

inline void Apply(const CallOptions& options, grpc::ClientContext& context) {
  if (options.timeout.count() > 0) {
    context.set_deadline(std::chrono::system_clock::now() + options.timeout);
  }
  context.set_wait_for_ready(options.wait_for_ready);
  for (const auto& [key, value] : options.metadata) {
    context.AddMetadata(key, value);
  }
}

// Unary: `co_await rpc::Call(loop, &*stub->async(), &Queue::StubInterface::async_interface::Submit, request)`.
template <typename Async, typename Request, typename Reply>
awaitable<absl::StatusOr<Reply>> Call(Loop& loop, Async* async,
                                      void (Async::*method)(grpc::ClientContext*, const Request*, Reply*,
                                                            std::function<void(grpc::Status)>),
                                      Request request, CallOptions options = {}) {
  struct State {
    explicit State(Loop& loop) : done(loop) {}
    grpc::ClientContext context;
    Request request;
    Reply reply;
    grpc::Status status;
    Signal done;
    bool is_done = false;
  };
  auto state = std::make_shared<State>(loop);  // gRPC and this coroutine: either may outlive the other
  state->request = std::move(request);
  Apply(options, state->context);
  // All that belongs to the loop goes with the posted function: gRPC's thread must have nothing left to
  // destroy when the loop, woken by it, has ended.
  (async->*method)(&state->context, &state->request, &state->reply,
                   [&loop, state, work = asio::make_work_guard(loop)](grpc::Status status) mutable {
                     asio::post(loop, [state = std::move(state), work = std::move(work),
                                       status = std::move(status)] {
                       state->status = status;
                       state->is_done = true;
                       state->done.Notify();
                     });
                   });
  while (!state->is_done) {
    co_await state->done.Wait();
    const asio::cancellation_state mine = co_await asio::this_coro::cancellation_state;
    if (mine.cancelled() != asio::cancellation_type::none) {
      state->context.TryCancel();
      co_return absl::CancelledError("the call was cancelled");
    }
  }
  if (!state->status.ok()) {
    co_return FromGrpc(state->status);
  }
  co_return std::move(state->reply);
}

namespace internal {

// What client streams of all shapes share.  gRPC holds the call (self_) until OnDone.  We start reads and
// writes from outside gRPC's reactions, so the call is on hold until Finish() or until its handle goes,
// which cancels it.
template <typename Reactor, typename Derived>
class ClientCall : public Reactor {
 public:
  explicit ClientCall(Loop& loop) : loop_(loop), changed_(loop), work_(asio::make_work_guard(loop)) {}

  grpc::ClientContext& context() { return context_; }
  void Cancel() { context_.TryCancel(); }

  // The call's end: its status.  No Read or Write after this.
  awaitable<absl::Status> Finish() {
    Release();
    while (!is_done_) {
      co_await changed_.Wait();
    }
    co_return FromGrpc(status_);
  }

  void OnDone(const grpc::Status& status) override {
    asio::post(loop_, [this, status] {
      status_ = status;
      is_done_ = true;
      changed_.Notify();
      work_.reset();
      auto keep = std::move(self_);
    });
  }

  // For Start() below.
  static std::shared_ptr<Derived> Begin(std::shared_ptr<Derived> call) {
    call->self_ = call;
    call->AddHold();
    call->StartCall();
    Derived* raw = call.get();
    return std::shared_ptr<Derived>(raw, [call = std::move(call)](Derived* dropped) {
      if (!dropped->is_done_) {
        dropped->Cancel();
      }
      dropped->Release();
    });
  }

 protected:
  bool IsOver() const { return is_done_ || !is_held_; }
  std::shared_ptr<Derived> Keep() const { return self_; }
  void Release() {
    if (is_held_) {
      is_held_ = false;
      this->RemoveHold();
    }
  }

  Loop& loop_;
  Signal changed_;
  grpc::ClientContext context_;
  grpc::Status status_;
  bool is_done_ = false;
  bool is_held_ = true;
  std::shared_ptr<Derived> self_;

 private:
  asio::executor_work_guard<Loop::executor_type> work_;
};

}  // namespace internal

// Both directions: Read(), Push(), queued(), Drain(), CloseWrites().
template <typename Out, typename In>
class ClientDuplex final
    : public internal::Reading<
          internal::Queueing<internal::ClientCall<grpc::ClientBidiReactor<Out, In>, ClientDuplex<Out, In>>, Out>, In> {
 public:
  using ClientDuplex::Reading::Reading;
};

// Server stream seen by the client: Read().  False: the server has sent its last; Finish() says why.
template <typename In>
class ClientReader final
    : public internal::Reading<internal::ClientCall<grpc::ClientReadReactor<In>, ClientReader<In>>, In> {
 public:
  using ClientReader::Reading::Reading;
};

// Client stream: Write(), then one reply.
template <typename Out, typename Reply>
class ClientWriter final
    : public internal::Writing<internal::ClientCall<grpc::ClientWriteReactor<Out>, ClientWriter<Out, Reply>>, Out> {
 public:
  using ClientWriter::Writing::Writing;

  void CloseWrites() { this->StartWritesDone(); }

  Reply reply;
};

// Starts a stream.  `start` calls the stub's async method with (context, ..., reactor):
//   auto call = rpc::Start<rpc::ClientReader<JobEvent>>(loop, options, [&](auto& call) {
//     stub->async()->Events(&call.context(), &request, &call); });
// Arguments that gRPC reads later (a reader's request) must outlive the call's start only.
template <typename CallType, typename StartFunction>
std::shared_ptr<CallType> Start(Loop& loop, const CallOptions& options, StartFunction start) {
  auto call = std::make_shared<CallType>(loop);
  Apply(options, call->context());
  start(*call);
  return CallType::Begin(std::move(call));
}

}  // namespace sekisho::rpc
