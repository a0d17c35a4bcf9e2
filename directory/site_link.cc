// SPDX-License-Identifier: Apache-2.0
#include "directory/site_link.h"

#include <grpcpp/grpcpp.h>

#include "common/log.h"
#include "common/refusal.h"
#include "common/rpc_client.h"
#include "common/rpc_window.h"
#include "directory/errors.h"

namespace sekisho::directory {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRedialMin{200};
constexpr milliseconds kRedialMax{5'000};

std::shared_ptr<grpc::Channel> Dial(const SiteLink::Options& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 3'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 3'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);  // half-open connections are found
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  rpc::SetWindow(arguments);
  return grpc::CreateCustomChannel(options.address, options.tls.credentials, arguments);
}

}  // namespace

awaitable<void> SiteLink::Run() {
  const proto::SiteWatchRequest request;
  milliseconds redial = kRedialMin;
  std::string told;
  for (;;) {
    const auto stub = proto::SiteWatch::NewStub(Dial(options_));
    auto call = rpc::Start<rpc::ClientReader<proto::SiteState>>(
        loop_, {}, [&](auto& started) { stub->async()->Watch(&started.context(), &request, &started); });
    proto::SiteState state;
    while (co_await call->Read(state)) {
      if (!std::exchange(told, "").empty() || redial != kRedialMin) {
        spdlog::info("the queue server tells its state address={}", options_.address);
      }
      redial = kRedialMin;
      listener_(&state, "");
    }
    absl::Status status = co_await call->Finish();
    if (const absl::Status verdict = options_.tls.server->Get().status();
        absl::IsUnavailable(status) && !verdict.ok() && !absl::IsUnavailable(verdict)) {
      status = verdict;  // gRPC calls a server that we refused unavailable
    }
    std::string why = Message(status);
    if (why != told) {
      spdlog::warn("the queue server does not tell its state, dialling again address={}: {}{}", options_.address,
                   Printable(why), Remedy(status).empty() ? "" : "; " + Remedy(status));
    }
    told = why;
    listener_(nullptr, why);
    co_await Sleep(loop_, redial);
    redial = std::min(redial * 2, kRedialMax);
  }
}

}  // namespace sekisho::directory
