// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/rpc_client.h"
#include "common/rpc_server.h"
#include "proto/job_service.grpc.pb.h"
#include "proto/nodes.grpc.pb.h"

namespace sekisho {
namespace {

using ::testing::ElementsAre;

// Counts what its handlers see; runs on the loop.
class FakeJobs final : public proto::JobService::CallbackService {
 public:
  explicit FakeJobs(Loop& loop) : loop_(loop) {}

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context, const proto::SignedRequest* request,
                                   proto::SubmitReply* reply) override {
    return rpc::Unary(loop_, context, [request, reply]() -> awaitable<absl::Status> {
      if (request->body().empty()) {
        co_return Refuse(absl::StatusCode::kInvalidArgument, 42, "empty request", "write one");
      }
      if (request->body() == "throw") {
        throw std::runtime_error("a fault of the handler's");
      }
      reply->set_job_id(request->body());
      co_return absl::OkStatus();
    });
  }
  grpc::ServerWriteReactor<proto::Update>* Attach(grpc::CallbackServerContext*,
                                                  const proto::AttachRequest* request) override {
    return rpc::Stream<proto::Update>(
        loop_, [this, follow = request->follow()](auto& writer) { return Count(writer, follow); });
  }
  grpc::ServerReadReactor<proto::InputChunk>* Input(grpc::CallbackServerContext*,
                                                    proto::InputReply* reply) override {
    return rpc::Receive<proto::InputChunk>(loop_, [reply](auto& reader) { return Sum(reader, *reply); });
  }

  bool was_cancelled = false;

 private:
  awaitable<absl::Status> Count(rpc::Writer<proto::Update>& writer, bool forever) {
    struct Noticed {
      bool& flag;
      ~Noticed() { flag = true; }
    };
    for (uint64_t i = 1; i <= 3; ++i) {
      proto::Update update;
      update.mutable_event()->set_sequence(i);
      co_await writer.Write(update);
    }
    if (forever) {
      Noticed noticed{was_cancelled};
      Signal never(loop_);
      co_await never.Wait();
    }
    co_return absl::OkStatus();
  }
  static awaitable<absl::Status> Sum(rpc::Reader<proto::InputChunk>& reader, proto::InputReply& reply) {
    proto::InputChunk chunk;
    while (co_await reader.Read(chunk)) {
      reply.set_accepted(reply.accepted() + chunk.data().size());
    }
    co_return absl::OkStatus();
  }

  Loop& loop_;
};

// Answers each Started with a Forget of the same job.
class FakeNodes final : public proto::Nodes::CallbackService {
 public:
  explicit FakeNodes(Loop& loop) : loop_(loop) {}
  grpc::ServerBidiReactor<proto::AgentMessage, proto::ServerMessage>* Attach(
      grpc::CallbackServerContext*) override {
    return rpc::Converse<proto::AgentMessage, proto::ServerMessage>(loop_, refuses ? Refuses : Echo);
  }

  bool refuses = false;

 private:
  static awaitable<absl::Status> Echo(rpc::Duplex<proto::AgentMessage, proto::ServerMessage>& peer) {
    proto::AgentMessage message;
    while (co_await peer.Read(message)) {
      proto::ServerMessage answer;
      answer.mutable_forget()->set_job_id(message.started().task().job_id());
      peer.Push(std::move(answer));
    }
    co_await peer.Drain();
    co_return absl::OkStatus();
  }
  static awaitable<absl::Status> Refuses(rpc::Duplex<proto::AgentMessage, proto::ServerMessage>& peer) {
    proto::AgentMessage message;
    co_await peer.Read(message);
    co_return absl::UnavailableError("not now");
  }
  Loop& loop_;
};

class RpcTest : public ::testing::Test {
 protected:
  RpcTest() : jobs_(loop_), nodes_(loop_) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&jobs_);
    builder.RegisterService(&nodes_);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    server_ = builder.BuildAndStart();
    auto channel =
        grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials());
    job_stub_ = proto::JobService::NewStub(channel);
    node_stub_ = proto::Nodes::NewStub(channel);
  }
  ~RpcTest() override {
    server_->Shutdown();
    loop_.restart();
    loop_.poll();
  }

  // Runs the loop until `body` has returned.
  template <typename Body>
  void Run(Body body) {
    auto work = asio::make_work_guard(loop_);
    co_spawn(loop_, std::move(body), [&](std::exception_ptr thrown) {
      EXPECT_FALSE(thrown);
      work.reset();
      loop_.stop();
    });
    loop_.restart();
    loop_.run();
  }
  using Async = proto::JobService::StubInterface::async_interface;

  awaitable<absl::StatusOr<proto::SubmitReply>> Submit(std::string body) {
    proto::SignedRequest request;
    request.set_body(std::move(body));
    co_return co_await rpc::Call<Async, proto::SignedRequest, proto::SubmitReply>(
        loop_, job_stub_->async(), &Async::Submit, request);
  }

  Loop loop_;
  FakeJobs jobs_;
  FakeNodes nodes_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<proto::JobService::Stub> job_stub_;
  std::unique_ptr<proto::Nodes::Stub> node_stub_;
};

TEST_F(RpcTest, AUnaryCallBringsItsReply) {
  Run([this]() -> awaitable<void> {
    const auto reply = co_await Submit("j1");
    EXPECT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->job_id(), "j1");
  });
}

TEST_F(RpcTest, ARefusalArrivesWithCodeAndRemedy) {
  Run([this]() -> awaitable<void> {
    const auto reply = co_await Submit("");
    EXPECT_EQ(GramCode(reply.status()), 42);
    EXPECT_EQ(Remedy(reply.status()), "write one");
  });
}

TEST_F(RpcTest, AHandlerThatThrowsLosesItsCallAlone) {
  Run([this]() -> awaitable<void> {
    const auto lost = co_await Submit("throw");
    EXPECT_EQ(lost.status().code(), absl::StatusCode::kInternal);
    const auto next = co_await Submit("j1");
    EXPECT_TRUE(next.ok()) << next.status();
  });
}

TEST_F(RpcTest, AServerStreamArrivesInOrderAndEnds) {
  Run([this]() -> awaitable<void> {
    proto::AttachRequest request;
    auto call = rpc::Start<rpc::ClientReader<proto::Update>>(loop_, {}, [&](auto& started) {
      job_stub_->async()->Attach(&started.context(), &request, &started);
    });
    std::vector<uint64_t> seen;
    proto::Update update;
    while (co_await call->Read(update)) {
      seen.push_back(update.event().sequence());
    }
    EXPECT_THAT(seen, ElementsAre(1, 2, 3));
    EXPECT_TRUE((co_await call->Finish()).ok());
  });
}

TEST_F(RpcTest, CancellingACallEndsItsHandler) {
  Run([this]() -> awaitable<void> {
    proto::AttachRequest request;
    request.set_follow(true);
    auto call = rpc::Start<rpc::ClientReader<proto::Update>>(loop_, {}, [&](auto& started) {
      job_stub_->async()->Attach(&started.context(), &request, &started);
    });
    proto::Update update;
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(co_await call->Read(update));
    }
    call->Cancel();
    EXPECT_EQ((co_await call->Finish()).code(), absl::StatusCode::kCancelled);
    while (!jobs_.was_cancelled) {
      co_await Sleep(loop_, std::chrono::milliseconds(1));
    }
  });
}

TEST_F(RpcTest, AClientStreamIsReadToItsEnd) {
  Run([this]() -> awaitable<void> {
    auto call = rpc::Start<rpc::ClientWriter<proto::InputChunk, proto::InputReply>>(
        loop_, {}, [&](auto& started) {
          job_stub_->async()->Input(&started.context(), &started.reply, &started);
        });
    for (int i = 0; i < 5; ++i) {
      proto::InputChunk chunk;
      chunk.set_data(std::string(1000, 'x'));
      EXPECT_TRUE(co_await call->Write(chunk));
    }
    call->CloseWrites();
    EXPECT_TRUE((co_await call->Finish()).ok());
    EXPECT_EQ(call->reply.accepted(), 5000u);
  });
}

TEST_F(RpcTest, BothDirectionsFlowAtOnce) {
  Run([this]() -> awaitable<void> {
    auto call = rpc::Start<rpc::ClientDuplex<proto::AgentMessage, proto::ServerMessage>>(
        loop_, {}, [&](auto& started) { node_stub_->async()->Attach(&started.context(), &started); });
    for (int i = 0; i < 100; ++i) {
      proto::AgentMessage message;
      message.mutable_started()->mutable_task()->set_job_id(std::to_string(i));
      call->Push(std::move(message));
    }
    call->CloseWrites();
    proto::ServerMessage answer;
    int seen = 0;
    while (co_await call->Read(answer)) {
      EXPECT_EQ(answer.forget().job_id(), std::to_string(seen++));
    }
    EXPECT_EQ(seen, 100);
    EXPECT_TRUE((co_await call->Finish()).ok());
  });
}

TEST_F(RpcTest, WritesMayComeWhileTheCallEnds) {
  nodes_.refuses = true;
  using Call = rpc::ClientDuplex<proto::AgentMessage, proto::ServerMessage>;
  const auto write = [](std::shared_ptr<Call> call, const bool& has_ended) -> awaitable<void> {
    while (!has_ended) {
      if (call->queued() == 0) {
        call->Push({});
      }
      co_await asio::post(asio::use_awaitable);
    }
  };
  Run([&]() -> awaitable<void> {
    for (int i = 0; i < 500; ++i) {
      auto call = rpc::Start<Call>(
          loop_, {}, [&](auto& started) { node_stub_->async()->Attach(&started.context(), &started); });
      bool has_ended = false;
      co_spawn(loop_, write(call, has_ended), Vital("the test"));
      proto::ServerMessage answer;
      EXPECT_FALSE(co_await call->Read(answer));
      EXPECT_EQ((co_await call->Finish()).code(), absl::StatusCode::kUnavailable);
      has_ended = true;
      co_await asio::post(asio::use_awaitable);  // it has seen that
      co_await asio::post(asio::use_awaitable);
    }
  });
}

}  // namespace
}  // namespace sekisho
