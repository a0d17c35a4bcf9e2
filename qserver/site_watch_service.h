// SPDX-License-Identifier: Apache-2.0
// What the site's directory asks, through the same port as the jobmanagers: docs/protocol/16-directory.md.
#pragma once

#include <functional>

#include "common/loop.h"
#include "common/rpc_server.h"
#include "proto/site_state.grpc.pb.h"
#include "qserver/conductor.h"
#include "qserver/inventory_watch.h"
#include "qserver/network_watch.h"
#include "qserver/site_state.h"

namespace sekisho::qserver {

class SiteWatchService final : public proto::SiteWatch::CallbackService {
 public:
  // Is the peer one of this site's directories?
  using Judge = std::function<absl::Status(const grpc::CallbackServerContext&)>;

  SiteWatchService(Loop& loop, Conductor& conductor, const InventoryWatch& inventory, SiteFacts facts,
                   Judge judge)
      : loop_(loop),
        conductor_(conductor),
        inventory_(inventory),
        facts_(std::move(facts)),
        judge_(std::move(judge)) {}

  // The nodes' network is kept.  Before anything is served.
  void SetNetwork(const NetworkWatch& network) { network_ = &network; }

  grpc::ServerWriteReactor<proto::SiteState>* Watch(grpc::CallbackServerContext* context,
                                                    const proto::SiteWatchRequest* request) override;

 private:
  awaitable<absl::Status> HandleWatch(grpc::CallbackServerContext& context,
                                      rpc::Writer<proto::SiteState>& writer);
  proto::SiteState Now() const;

  Loop& loop_;
  Conductor& conductor_;
  const InventoryWatch& inventory_;
  const SiteFacts facts_;
  const Judge judge_;
  const NetworkWatch* network_ = nullptr;
};

}  // namespace sekisho::qserver
