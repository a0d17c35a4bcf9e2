// SPDX-License-Identifier: Apache-2.0
// Making gRPC calls from coroutines on the loop: the twin of rpc_server.h.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include "common/loop.h"
#include "common/rpc_status.h"

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

// Both directions; also serves one-directional calls through the wrappers below.
template <typename Out, typename In>
class ClientDuplex final
    : public internal::ClientCall<grpc::ClientBidiReactor<Out, In>, ClientDuplex<Out, In>> {
 public:
  using internal::ClientCall<grpc::ClientBidiReactor<Out, In>, ClientDuplex<Out, In>>::ClientCall;

  // False: the server has sent its last; Finish() says why.
  awaitable<bool> Read(In& message) {
    is_reading_ = true;
    this->StartRead(&incoming_);
    while (is_reading_) {
      co_await this->changed_.Wait();
    }
    message = std::move(incoming_);
    co_return is_read_ok_;
  }

  void Push(Out message) {
    if (is_broken_ || is_closing_ || this->is_done_) {
      return;
    }
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) {
      this->StartWrite(&queue_.front());
    }
  }
  size_t queued() const { return queue_.size(); }

  awaitable<bool> Drain(size_t most = 0) {
    while (queue_.size() > most && !is_broken_ && !this->is_done_) {
      co_await this->changed_.Wait();
    }
    co_return !is_broken_ && !this->is_done_;
  }

  // No more writes; what is queued is still sent.
  void CloseWrites() {
    is_closing_ = true;
    if (queue_.empty() && !is_broken_) {
      this->StartWritesDone();
    }
  }

  void OnReadDone(bool ok) override {
    asio::post(this->loop_, [this, ok, keep = this->self_] {
      is_reading_ = false;
      is_read_ok_ = ok;
      this->changed_.Notify();
    });
  }
  void OnWriteDone(bool ok) override {
    asio::post(this->loop_, [this, ok, keep = this->self_] {
      queue_.pop_front();
      if (!ok) {
        is_broken_ = true;
        queue_.clear();
      } else if (!queue_.empty()) {
        this->StartWrite(&queue_.front());
      } else if (is_closing_) {
        this->StartWritesDone();
      }
      this->changed_.Notify();
    });
  }

 private:
  std::deque<Out> queue_;
  In incoming_;
  bool is_reading_ = false;
  bool is_read_ok_ = true;
  bool is_broken_ = false;
  bool is_closing_ = false;
};

// Server stream seen by the client.
template <typename In>
class ClientReader final : public internal::ClientCall<grpc::ClientReadReactor<In>, ClientReader<In>> {
 public:
  using internal::ClientCall<grpc::ClientReadReactor<In>, ClientReader<In>>::ClientCall;

  awaitable<bool> Read(In& message) {
    is_reading_ = true;
    this->StartRead(&incoming_);
    while (is_reading_) {
      co_await this->changed_.Wait();
    }
    message = std::move(incoming_);
    co_return is_read_ok_;
  }
  void OnReadDone(bool ok) override {
    asio::post(this->loop_, [this, ok, keep = this->self_] {
      is_reading_ = false;
      is_read_ok_ = ok;
      this->changed_.Notify();
    });
  }

 private:
  In incoming_;
  bool is_reading_ = false;
  bool is_read_ok_ = true;
};

// Client stream: writes, then one reply.
template <typename Out, typename Reply>
class ClientWriter final
    : public internal::ClientCall<grpc::ClientWriteReactor<Out>, ClientWriter<Out, Reply>> {
 public:
  using internal::ClientCall<grpc::ClientWriteReactor<Out>, ClientWriter<Out, Reply>>::ClientCall;

  awaitable<bool> Write(Out message) {
    outgoing_ = std::move(message);
    is_writing_ = true;
    this->StartWrite(&outgoing_);
    while (is_writing_ && !this->is_done_) {
      co_await this->changed_.Wait();
    }
    co_return is_ok_ && !this->is_done_;
  }
  void CloseWrites() { this->StartWritesDone(); }
  void OnWriteDone(bool ok) override {
    asio::post(this->loop_, [this, ok, keep = this->self_] {
      is_writing_ = false;
      is_ok_ = ok;
      this->changed_.Notify();
    });
  }

  Reply reply;

 private:
  Out outgoing_;
  bool is_writing_ = false;
  bool is_ok_ = true;
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
