// SPDX-License-Identifier: Apache-2.0
// Leads a world: keeps a call to each part's site, signs what World orders, and is there again
// after a crash.  docs/protocol/15-mpirun.md, "The leader".
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <grpcpp/channel.h>

#include "common/event_store.h"
#include "common/identity/leader_key.h"
#include "common/loop.h"
#include "common/rpc_client.h"
#include "jobmanager/led_traffic.h"
#include "jobmanager/world.h"
#include "proto/job_service.grpc.pb.h"

namespace sekisho::jobmanager {

// A channel to a gatekeeper, HOST:PORT, whose certificate has this subject.
using DialGatekeeper = std::function<std::shared_ptr<grpc::Channel>(const std::string& address,
                                                                    const std::string& subject)>;

int64_t NowMs();
World::Part WorldPartOf(const proto::LeadRequest::Part& part);

class Leader {
 public:
  // `save`: what is to be remembered has changed; done when it is durable.
  using Save = std::function<awaitable<absl::Status>()>;

  Leader(Loop& loop, proto::LedWorld led, const DialGatekeeper& dial, LedTraffic& traffic, Save save);
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  // Until the world has ended.  `self` keeps it alive meanwhile.
  static void Start(std::shared_ptr<Leader> self, std::function<void()> on_end);

  // Durable when it returns; a cancel, when all parts have ended.
  static awaitable<absl::Status> Edit(std::shared_ptr<Leader> self, proto::CoallocRequest request);
  proto::CoallocReply View() const;

  const proto::LedWorld& led() const { return led_; }
  bool has_ended() const { return world_.has_ended(); }
  // All that has been said since Start, for who looks on; `changed` when there is more.
  const std::vector<proto::LeadUpdate>& updates() const { return updates_; }
  std::shared_ptr<Signal> changed() const { return changed_; }

 private:
  using Call = rpc::ClientDuplex<proto::PartDown, proto::PartUp>;

  static awaitable<void> Attend(std::shared_ptr<Leader> self, int part);
  static awaitable<void> Limit(std::shared_ptr<Leader> self);
  static awaitable<void> Release(std::shared_ptr<Leader> self);
  static awaitable<absl::Status> Add(std::shared_ptr<Leader> self, proto::LeadRequest::Part part);
  static awaitable<absl::Status> Drop(std::shared_ptr<Leader> self, int part);
  static awaitable<absl::Status> EndHold(std::shared_ptr<Leader> self, bool only_if_ready);
  static awaitable<absl::Status> Store(std::shared_ptr<Leader> self, World::Effects effects);
  awaitable<absl::Status> Converse(std::shared_ptr<Leader> self, int part);
  void EndIfOver();
  std::string WhyBroken(int part, const absl::Status& status) const;
  void NameParts(int to, proto::Order::Release& release) const;
  void NoteDropped();
  void Apply(const std::shared_ptr<Leader>& self, World::Effects effects);

  Loop& loop_;
  proto::LedWorld led_;
  const identity::LeaderKey key_;
  const DialGatekeeper& dial_;
  LedTraffic& traffic_;
  const Save save_;
  World world_;
  struct Attended {
    std::shared_ptr<Call> call = nullptr;  // while it stands
    std::string job_id = {};               // once it is submitted
    bool is_heard = false;                 // the queue server, by the call that stands
    std::chrono::steady_clock::time_point heard = {};  // when it last was
    bool is_over = false;                              // it has ended, or was refused
  };
  std::vector<Attended> parts_;
  std::vector<proto::LeadUpdate> updates_;
  std::shared_ptr<Signal> changed_;
  std::function<void()> on_end_;
  bool is_end_logged_ = false;
};

// The worlds that this account leads, and what the disk remembers of them.
class Leaders {
 public:
  // `marker`: a file that is there as long as any is led.
  Leaders(Loop& loop, EventStore& store, std::string marker, DialGatekeeper dial)
      : loop_(loop), store_(store), marker_(std::move(marker)), dial_(std::move(dial)) {}

  // Goes on with what an earlier process led.
  absl::Status Resume();
  // Durable when it returns.
  awaitable<absl::StatusOr<std::shared_ptr<Leader>>> Begin(proto::LedWorld led);
  // Null if `subject` has no such world, or it ended a while ago.
  std::shared_ptr<Leader> Find(const std::string& world, const std::string& subject) const;
  const LedTraffic& traffic() const { return traffic_; }

 private:
  std::shared_ptr<Leader> Add(proto::LedWorld led);
  awaitable<void> ForgetLater(std::string name);
  void Put();
  void Mark(bool leads);

  Loop& loop_;
  EventStore& store_;
  const std::string marker_;
  const DialGatekeeper dial_;
  LedTraffic traffic_;
  std::map<std::string, std::shared_ptr<Leader>> leaders_;  // by world
  std::set<std::string> over_;                              // of these, for who comes late
};

}  // namespace sekisho::jobmanager
