// SPDX-License-Identifier: Apache-2.0
#include "qserver/site_watch_service.h"

namespace sekisho::qserver {
namespace {

// What changes within this time is told at once: a thousand jobs that begin together are one message.
constexpr std::chrono::milliseconds kGather{50};
// After our start the allocator's first word is waited for: a site without nodes would be news.
constexpr std::chrono::seconds kFirstWord{5};
constexpr size_t kMostNetwork = 128 << 10;  // some 4,000 nodes

}  // namespace

grpc::ServerWriteReactor<proto::SiteState>* SiteWatchService::Watch(grpc::CallbackServerContext* context,
                                                                    const proto::SiteWatchRequest*) {
  return rpc::Stream<proto::SiteState>(
      loop_, [this, context](auto& writer) { return HandleWatch(*context, writer); });
}

awaitable<absl::Status> SiteWatchService::HandleWatch(grpc::CallbackServerContext& context,
                                                      rpc::Writer<proto::SiteState>& writer) {
  CO_RETURN_IF_ERROR(judge_(context));
  const auto limit = std::chrono::steady_clock::now() + kFirstWord;
  while (!inventory_.is_current() && std::chrono::steady_clock::now() < limit) {
    co_await conductor_.site_changed().WaitFor(kFirstWord);
  }
  std::string told;
  for (;;) {
    const uint64_t generation = conductor_.site_generation();
    proto::SiteState state = Now();
    std::string bytes = state.SerializeAsString();
    if (bytes != told) {
      told = std::move(bytes);
      const bool is_there = co_await writer.Write(std::move(state));
      if (!is_there) {
        co_return absl::CancelledError("the directory has gone");
      }
      co_await Sleep(loop_, kGather);
    }
    while (conductor_.site_generation() == generation) {
      co_await conductor_.site_changed().Wait();
    }
  }
}

proto::SiteState SiteWatchService::Now() const {
  std::map<std::string, NodeFacts> attached;
  for (const auto& [name, link] : conductor_.nodes()) {
    if (!link.hello.has_pilot() && !conductor_.restrictions().IsDrained(name)) {
      attached[name] = {link.hello.architecture(), link.hello.os(), link.hello.memory_mb()};
    }
  }
  proto::SiteState state =
      MakeSiteState(facts_, inventory_.inventory(), inventory_.is_current(), attached,
                    conductor_.queue().BusyByNode(), conductor_.queue().census());
  if (network_ != nullptr) {
    if (std::string tree = network_->upkeep().Text(); tree.size() <= kMostNetwork) {
      state.set_network(std::move(tree));
    }
  }
  return state;
}

}  // namespace sekisho::qserver
