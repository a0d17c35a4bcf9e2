// SPDX-License-Identifier: Apache-2.0
// Serving gRPC calls with coroutines on the loop.  gRPC's callback threads only post; a handler is an
// awaitable<absl::Status> that runs on the loop and ends the call by returning.  A call that the peer has
// given up cancels what its handler waits for.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <grpcpp/grpcpp.h>

#include "common/caught.h"
#include "common/loop.h"
#include "common/rpc_status.h"
#include "common/rpc_stream.h"

namespace sekisho::rpc {

namespace internal {

inline grpc::Status Outcome(const std::exception_ptr& thrown, const absl::Status& status) {
  if (WhyThrown(thrown)) {
    Logged("a call")(thrown);
    return grpc::Status(grpc::StatusCode::INTERNAL, kOurFault);
  }
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
  bool IsOver() const { return is_cancelled_ || is_served_; }
  std::nullptr_t Keep() const { return nullptr; }  // OnDone's is the last that is posted

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

// Server stream: `awaitable<absl::Status> Handle(Writer<Reply>& writer, ...)`, with Write().
template <typename Out>
class Writer final : public internal::Writing<internal::ServerCall<grpc::ServerWriteReactor<Out>>, Out> {
 public:
  using Writer::Writing::Writing;
};

// `return rpc::Stream<Reply>(loop_, [=, this](auto& writer) { return Handle(writer, *request); });`
template <typename Out, typename Handler>
grpc::ServerWriteReactor<Out>* Stream(Loop& loop, Handler handler) {
  auto* writer = new Writer<Out>(loop);
  writer->Serve([writer, handler = std::move(handler)]() mutable { return handler(*writer); });
  return writer;
}

// Client stream: the peer sends, the handler Read()s to the end and answers once.
template <typename In>
class Reader final : public internal::Reading<internal::ServerCall<grpc::ServerReadReactor<In>>, In> {
 public:
  using Reader::Reading::Reading;
};

template <typename In, typename Handler>
grpc::ServerReadReactor<In>* Receive(Loop& loop, Handler handler) {
  auto* reader = new Reader<In>(loop);
  reader->Serve([reader, handler = std::move(handler)]() mutable { return handler(*reader); });
  return reader;
}

// Both directions: Read(), Push(), queued(), Drain().
template <typename In, typename Out>
class Duplex final
    : public internal::Reading<internal::Queueing<internal::ServerCall<grpc::ServerBidiReactor<In, Out>>, Out>, In> {
 public:
  using Duplex::Reading::Reading;
};

template <typename In, typename Out, typename Handler>
grpc::ServerBidiReactor<In, Out>* Converse(Loop& loop, Handler handler) {
  auto* duplex = new Duplex<In, Out>(loop);
  duplex->Serve([duplex, handler = std::move(handler)]() mutable { return handler(*duplex); });
  return duplex;
}

}  // namespace sekisho::rpc
