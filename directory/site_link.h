// SPDX-License-Identifier: Apache-2.0
// The queue server's word on its site, through the pinhole: one stream that is dialled again whenever it ends.
#pragma once

#include <functional>
#include <string>

#include "common/loop.h"
#include "common/tls/client_tls.h"
#include "proto/site_state.grpc.pb.h"

namespace sekisho::directory {

class SiteLink {
 public:
  struct Options {
    std::string address;  // HOST:PORT
    tls::ClientTls tls;
  };
  // On the loop: a new state, or nullptr and why there is none any more.
  using Listener = std::function<void(const proto::SiteState* state, const std::string& why)>;

  SiteLink(Loop& loop, Options options, Listener listener)
      : loop_(loop), options_(std::move(options)), listener_(std::move(listener)) {}

  awaitable<void> Run();  // for ever

 private:
  Loop& loop_;
  const Options options_;
  const Listener listener_;
};

}  // namespace sekisho::directory
