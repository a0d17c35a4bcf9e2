// SPDX-License-Identifier: Apache-2.0
// Serving gRPC calls with coroutines on the loop.  gRPC's callback threads only post; a handler is an
// awaitable<absl::Status> that runs on the loop and ends the call by returning.  A call that the peer has
// given up cancels what its handler waits for.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <utility>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <grpcpp/grpcpp.h>

#include "common/loop.h"
#include "common/rpc_status.h"

namespace sekisho::rpc {

namespace internal {

inline grpc::Status Outcome(const std::exception_ptr& thrown, const absl::Status& status) {
  // asio throws into a coroutine whose wait was cancelled: the peer is gone.
  return thrown ? grpc::Status(grpc::StatusCode::CANCELLED, "the call was cancelled") : ToGrpc(status);
}

// What server streams of all shapes share: the running handler and its cancellation.
template <typename Reactor>
class ServerCall : public Reactor {
 public:
  explicit ServerCall(Loop& loop) : loop_(loop), changed_(loop) {}

  bool is_cancelled() const { return is_cancelled_; }

  // `handler` is called on the loop; what it returns ends the call.
  template <typename Handler>
  void Serve(Handler handler) {
    asio::post(loop_, [this, handler = std::move(handler)]() mutable {
      co_spawn(loop_, std::move(handler),
               asio::bind_cancellation_slot(cancel_.slot(), [this](std::exception_ptr thrown,
                                                                   absl::Status status) {
                 is_served_ = true;
                 this->Finish(Outcome(thrown, status));
               }));
    });
  }

  void OnCancel() override {
    asio::post(loop_, [this] {
      is_cancelled_ = true;
      changed_.Notify();
      if (!is_served_) {
        cancel_.emit(asio::cancellation_type::terminal);
      }
    });
  }
  // gRPC calls it last; what was posted before still runs before this.  A loop that has ended lets go of it, too.
  void OnDone() override {
    asio::post(loop_, [self = std::unique_ptr<Reactor>(this)] {});
  }

 protected:
  ~ServerCall() override = default;

  Loop& loop_;
  Signal changed_;
  asio::cancellation_signal cancel_;
  bool is_cancelled_ = false;
  bool is_served_ = false;
};

}  // namespace internal

// Unary: `return rpc::Unary(loop_, context, [=, this] { return Handle(context, *request, *reply); });`
template <typename Handler>
grpc::ServerUnaryReactor* Unary(Loop& loop, grpc::CallbackServerContext* context, Handler handler) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  asio::post(loop, [&loop, reactor, handler = std::move(handler)]() mutable {
    co_spawn(loop, std::move(handler), [reactor](std::exception_ptr thrown, absl::Status status) {
      reactor->Finish(internal::Outcome(thrown, status));
    });
  });
  return reactor;
}

// Server stream: `awaitable<absl::Status> Handle(Writer<Reply>& writer, ...)`.
template <typename Out>
class Writer final : public internal::ServerCall<grpc::ServerWriteReactor<Out>> {
 public:
  using internal::ServerCall<grpc::ServerWriteReactor<Out>>::ServerCall;

  // Returns when gRPC has taken it; false: the peer is gone.
  awaitable<bool> Write(Out message) {
    outgoing_ = std::move(message);  // gRPC's until OnWriteDone, even if the handler is cancelled
    is_writing_ = true;
    this->StartWrite(&outgoing_);
    while (is_writing_) {
      co_await this->changed_.Wait();
    }
    co_return is_ok_;
  }

  void OnWriteDone(bool ok) override {
    asio::post(this->loop_, [this, ok] {
      is_writing_ = false;
      is_ok_ = ok;
      this->changed_.Notify();
    });
  }

 private:
  Out outgoing_;
  bool is_writing_ = false;
  bool is_ok_ = true;
};

// `return rpc::Stream<Reply>(loop_, [=, this](auto& writer) { return Handle(writer, *request); });`
template <typename Out, typename Handler>
grpc::ServerWriteReactor<Out>* Stream(Loop& loop, Handler handler) {
  auto* writer = new Writer<Out>(loop);
  writer->Serve([writer, handler = std::move(handler)]() mutable { return handler(*writer); });
  return writer;
}

// Client stream: the peer sends, the handler reads to the end and answers once.
template <typename In>
class Reader final : public internal::ServerCall<grpc::ServerReadReactor<In>> {
 public:
  using internal::ServerCall<grpc::ServerReadReactor<In>>::ServerCall;

  // False: the peer has sent its last.
  awaitable<bool> Read(In& message) {
    is_reading_ = true;
    this->StartRead(&incoming_);
    while (is_reading_) {
      co_await this->changed_.Wait();
    }
    message = std::move(incoming_);
    co_return is_ok_;
  }

  void OnReadDone(bool ok) override {
    asio::post(this->loop_, [this, ok] {
      is_reading_ = false;
      is_ok_ = ok;
      this->changed_.Notify();
    });
  }

 private:
  In incoming_;  // gRPC's until OnReadDone, even if the handler is cancelled
  bool is_reading_ = false;
  bool is_ok_ = true;
};

template <typename In, typename Handler>
grpc::ServerReadReactor<In>* Receive(Loop& loop, Handler handler) {
  auto* reader = new Reader<In>(loop);
  reader->Serve([reader, handler = std::move(handler)]() mutable { return handler(*reader); });
  return reader;
}

// Both directions.  Reads are awaited; writes are queued (watch `queued()`), or awaited with Drain().
template <typename In, typename Out>
class Duplex final : public internal::ServerCall<grpc::ServerBidiReactor<In, Out>> {
 public:
  using internal::ServerCall<grpc::ServerBidiReactor<In, Out>>::ServerCall;

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
    if (this->is_cancelled_ || this->is_served_ || is_broken_) {
      return;
    }
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) {
      this->StartWrite(&queue_.front());
    }
  }
  size_t queued() const { return queue_.size(); }

  // Waits until at most `most` messages are queued; false: the peer is gone.
  awaitable<bool> Drain(size_t most = 0) {
    while (queue_.size() > most && !is_broken_ && !this->is_cancelled_) {
      co_await this->changed_.Wait();
    }
    co_return !is_broken_ && !this->is_cancelled_;
  }

  void OnReadDone(bool ok) override {
    asio::post(this->loop_, [this, ok] {
      is_reading_ = false;
      is_read_ok_ = ok;
      this->changed_.Notify();
    });
  }
  void OnWriteDone(bool ok) override {
    asio::post(this->loop_, [this, ok] {
      queue_.pop_front();
      if (!ok) {
        is_broken_ = true;
        queue_.clear();
      } else if (!queue_.empty() && !this->is_served_) {
        this->StartWrite(&queue_.front());
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
};

template <typename In, typename Out, typename Handler>
grpc::ServerBidiReactor<In, Out>* Converse(Loop& loop, Handler handler) {
  auto* duplex = new Duplex<In, Out>(loop);
  duplex->Serve([duplex, handler = std::move(handler)]() mutable { return handler(*duplex); });
  return duplex;
}

}  // namespace sekisho::rpc
