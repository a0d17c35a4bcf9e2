// SPDX-License-Identifier: Apache-2.0
// The whole door but TLS and processes: a client, the gatekeeper's service behind its own acceptor, and a
// server inside that knows a few methods.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "common/acceptor.h"
#include "common/call_metadata.h"
#include "common/refusal.h"
#include "common/rpc_status.h"
#include "gatekeeper/service.h"

namespace sekisho::gatekeeper {

using std::chrono::seconds;

inline grpc::ByteBuffer Buffer(const std::string& text) {
  grpc::Slice slice(text);
  return {&slice, 1};
}

inline std::string Text(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) {
    return "";
  }
  std::string text;
  for (const auto& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

// Inside: what a jobmanager might do, without being one.
class FakeInside final : public grpc::CallbackGenericService {
 public:
  std::promise<void> cancelled;
  std::atomic<int> flooded = 0;

 private:
  class Handler final : public grpc::ServerGenericBidiReactor {
   public:
    Handler(FakeInside& inside, grpc::GenericCallbackServerContext* context)
        : inside_(inside), context_(context), method_(context->method()) {
      context->AddInitialMetadata("x-initial", "hello");
      context->AddTrailingMetadata("x-trailing-bin", std::string("\0\1", 2));
      if (method_ == "/sekisho.proto.JobService/Refuse") {
        Finish(ToGrpc(Refuse(absl::StatusCode::kFailedPrecondition, 37, "no such queue", "use another")));
      } else if (method_ == "/sekisho.proto.JobService/Crash") {
        Finish({grpc::UNAVAILABLE, "Socket closed"});
      } else if (method_ == "/sekisho.proto.JobService/EarlyEnd") {
        Finish(grpc::Status::OK);
      } else if (method_ == "/sekisho.proto.JobService/Flood") {
        out_ = Buffer(std::string(64 * 1024, 'f'));
        StartWrite(&out_);
      } else if (method_ == "/sekisho.proto.JobService/Metadata") {
        std::string all;
        for (const auto& [key, value] : context->client_metadata()) {
          all += std::string(key.data(), key.size()) + "=" + std::string(value.data(), value.size()) + ";";
        }
        all += context->deadline() < std::chrono::system_clock::now() + seconds(60) ? "soon" : "never";
        out_ = Buffer(all);
        StartWrite(&out_);
      } else if (method_ == "/sekisho.proto.JobService/Hang") {
        StartSendInitialMetadata();
      } else {
        StartRead(&in_);
      }
    }
    void OnReadDone(bool ok) override {
      if (!ok) {
        Finish(grpc::Status::OK);
        return;
      }
      out_ = Buffer("echo " + Text(in_));
      StartWrite(&out_);
    }
    void OnWriteDone(bool ok) override {
      if (method_ == "/sekisho.proto.JobService/Metadata") {
        Finish(grpc::Status::OK);
      } else if (method_ != "/sekisho.proto.JobService/Flood") {
        StartRead(&in_);
      } else if (ok) {
        ++inside_.flooded;
        StartWrite(&out_);
      } else {
        Finish(grpc::Status::CANCELLED);
      }
    }
    void OnCancel() override {
      if (method_ == "/sekisho.proto.JobService/Hang") {
        inside_.cancelled.set_value();
        Finish(grpc::Status::CANCELLED);
      }
    }
    void OnDone() override { delete this; }

   private:
    FakeInside& inside_;
    grpc::GenericCallbackServerContext* context_;
    const std::string method_;
    grpc::ByteBuffer in_, out_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Handler(*this, context);
  }
};

class GatekeeperService : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sekisho-door-XXXXXX";
    directory_ = mkdtemp(name);
    config_.set_site("siteA");

    grpc::ServerBuilder inside_builder;
    inside_builder.AddListeningPort("unix:" + directory_ + "/socket", grpc::InsecureServerCredentials());
    inside_builder.RegisterCallbackGenericService(&inside_);
    inside_server_ = inside_builder.BuildAndStart();
    channel_ = grpc::CreateChannel("unix:" + directory_ + "/socket", grpc::InsecureChannelCredentials());

    acceptor_ = std::make_unique<Acceptor>(loop_, limits_, /*expect_tls=*/false);
    ASSERT_TRUE(acceptor_->Listen("127.0.0.1:0").ok());
    service_ = std::make_unique<Service>(
        loop_, config_,
        Service::Parts{
            .identify = [this](const grpc::ServerContextBase&) { return caller_; },
            .authenticated = [this](const std::string& peer) { return acceptor_->Finish(peer); },
            .hang_up = [this](const std::string& peer) { acceptor_->HangUp(peer); },
            .can_audit = [this] { return audit_status_; },
            .connect = [this](std::string) -> awaitable<absl::StatusOr<Service::Inside>> {
              if (connect_throws_) {
                throw std::runtime_error("a fault");
              }
              CO_RETURN_IF_ERROR(connect_status_);
              co_return Service::Inside{channel_, "secret"};
            },
            .audit =
                [this](const AuditRecord& record) {
                  const std::lock_guard lock(mutex_);
                  audit_.push_back(AuditLine(record));
                  audited_.notify_all();
                }});
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(service_.get());
    external_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
    server_ = builder.BuildAndStart();
    acceptor_->Run(std::move(external_));
    thread_ = std::thread([this] { loop_.run(); });

    client_ = Dial();
  }

  // A connection of its own.
  std::shared_ptr<grpc::Channel> Dial() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(acceptor_->port()),
                                     grpc::InsecureChannelCredentials(), arguments);
  }

  size_t OpenConnections() {
    std::promise<size_t> open;
    asio::post(loop_, [&] { open.set_value(acceptor_->admission().open()); });
    return open.get_future().get();
  }

  void TearDown() override {
    server_->Shutdown(std::chrono::system_clock::now());
    inside_server_->Shutdown(std::chrono::system_clock::now());
    asio::post(loop_, [this] {
      acceptor_->Stop();
      asio::post(loop_, [this] { loop_.stop(); });
    });
    thread_.join();
    acceptor_.reset();
    std::filesystem::remove_all(directory_);
  }

  // A call as a client makes it, step by step.
  struct ClientCall {
    ClientCall(GatekeeperService& test, const std::string& method) : ClientCall(test.client_, method) {}
    ClientCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) {
      stub = std::make_unique<grpc::GenericStub>(channel);
      context.set_deadline(std::chrono::system_clock::now() + seconds(20));
      this->method = method;
    }
    ~ClientCall() {
      queue.Shutdown();
      void* tag;
      bool ok;
      while (queue.Next(&tag, &ok)) {
      }
    }
    void Start() {
      call = stub->PrepareCall(&context, method, &queue);
      call->StartCall(this);
      Next();
    }
    bool Next() {
      void* tag;
      bool ok = false;
      queue.Next(&tag, &ok);
      return ok;
    }
    bool Write(const std::string& text) {
      call->Write(Buffer(text), this);
      return Next();
    }
    void WritesDone() {
      call->WritesDone(this);
      Next();
    }
    void ReadInitialMetadata() {
      call->ReadInitialMetadata(this);
      Next();
    }
    std::optional<std::string> Read() {
      grpc::ByteBuffer buffer;
      call->Read(&buffer, this);
      return Next() ? std::optional(Text(buffer)) : std::nullopt;
    }
    grpc::Status Finish() {
      grpc::Status status;
      call->Finish(&status, this);
      Next();
      return status;
    }
    std::string method;
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    std::unique_ptr<grpc::GenericStub> stub;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  };

  std::string LastAudit(size_t count = 1) {
    std::unique_lock lock(mutex_);
    audited_.wait_for(lock, seconds(10), [&] { return audit_.size() >= count; });
    return audit_.size() >= count ? audit_[count - 1] : "";
  }

  std::string directory_;
  Config config_;
  absl::StatusOr<Caller> caller_ = Caller{"/O=Grid/CN=Alice", false, {"alice"}};
  absl::Status connect_status_;
  std::atomic<bool> connect_throws_ = false;
  absl::Status audit_status_;
  Admission::Limits limits_;
  FakeInside inside_;
  std::unique_ptr<grpc::Server> inside_server_;
  std::shared_ptr<grpc::Channel> channel_;
  Loop loop_{1};
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> external_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
  std::shared_ptr<grpc::Channel> client_;
  std::mutex mutex_;
  std::condition_variable audited_;
  std::vector<std::string> audit_;
};

}  // namespace sekisho::gatekeeper
