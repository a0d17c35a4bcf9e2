// SPDX-License-Identifier: Apache-2.0
// A sekisho-stager that runs for one account, and what it is told: docs/protocol/17-staging.md.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <asio/local/stream_protocol.hpp>

#include "common/loop.h"
#include "common/status.h"
#include "qserver/spawn.h"
#include "qserver/stager.pb.h"

namespace sekisho::qserver {

class StagerLink {
 public:
  // `as`, if none: as we are.
  static awaitable<absl::StatusOr<std::unique_ptr<StagerLink>>> Start(Loop& loop, std::string program,
                                                                      std::optional<RunAs> as,
                                                                      StagerOrder::Begin begin);
  ~StagerLink();  // the program ends by itself then; one that has not answered is killed
  StagerLink(const StagerLink&) = delete;
  StagerLink& operator=(const StagerLink&) = delete;

  // An order that has no answer; returns when the stager has room for more.
  awaitable<absl::Status> Tell(StagerOrder order);
  // One that has.  InvalidArgument: it is not allowed.  DataLoss: the content is another.  FailedPrecondition: the
  // system said no.  Unavailable: the stager has died.
  awaitable<absl::StatusOr<StagerReply>> Ask(StagerOrder order);

 private:
  StagerLink(Loop& loop, int fd, pid_t pid);

  Loop& loop_;
  asio::local::stream_protocol::socket socket_;
  const pid_t pid_;
  bool is_asked_ = false;  // and has not answered
};

}  // namespace sekisho::qserver
