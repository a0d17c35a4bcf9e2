// SPDX-License-Identifier: Apache-2.0
// The account's jobs at work: the book on disk, submission through the firewall, and who watches
// what. docs/protocol/4-submission.md.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/event_store.h"
#include "common/loop.h"
#include "common/retention.h"
#include "common/status.h"
#include "common/trimmer.h"
#include "jobmanager/book.h"
#include "jobmanager/queue_server.h"
#include "jobmanager/request.h"

namespace sekisho::jobmanager {

// One who looks on: events of a job as they come.
struct Watcher {
  explicit Watcher(Loop& loop) : changed(loop) {}

  struct Item {
    uint64_t row = 0;  // in the store
    proto::JobEvent event;
  };
  static constexpr size_t kItemsMax = 256;

  Signal changed;
  std::deque<Item> items;
  bool is_behind = false;  // too slow: items were dropped, read the store again
  bool has_moved = false;  // elements of an array that it watches have changed
  bool is_withdrawn = false;
};

class Jobs {
 public:
  Jobs(Loop& loop, Here here, EventStore& store, QueueServer& queue, Retention retention);

  // Reads the store.  Before anything else.
  absl::Status Load();
  // Follows the queue server, and submits what was not confirmed when we ended.
  void Start();

  // Done when the job is known here and inside, or refused and nothing is left of it.  `watcher`,
  // if given, sees a new job's events from the first on.
  awaitable<absl::StatusOr<proto::SubmitReply>> Submit(Caller caller, proto::SignedRequest request,
                                                       std::shared_ptr<Watcher> watcher = nullptr);
  awaitable<absl::StatusOr<proto::CommandReply>> Command(Caller caller,
                                                         proto::SignedRequest request);

  awaitable<absl::StatusOr<proto::AdministerReply>> Administer(Caller caller, proto::SignedRequest request);

  // Many at a time: jobs_many.cc.  What the queue server has accepted is known here when the answer comes.
  awaitable<absl::StatusOr<proto::ManyReply>> SubmitMany(Caller caller, proto::SignedRequest request);
  awaitable<absl::StatusOr<proto::ManyReply>> CommandMany(Caller caller, proto::SignedRequest request);

  // Waits until the queue server has the job.  False: it ended before that.
  awaitable<bool> UntilSubmitted(std::string job_id);

  void Watch(const std::string& job_id, std::shared_ptr<Watcher> watcher);
  // What has happened so far, as stored.
  awaitable<absl::StatusOr<std::vector<Watcher::Item>>> History(std::string job_id);

  const Book& book() const { return book_; }
  // It exists, has ended without ever being, or is waited for: an element of an array.
  awaitable<void> UntilMade(std::string job_id, std::string subject);
  // With its RSL, which only the store has.
  awaitable<proto::JobStatus> Status(std::string job_id, std::string subject);
  QueueServer& queue() { return queue_; }
  const Here& here() const { return here_; }

  static int64_t NowMs();

 private:
  // A submission that waits for the way inside: nothing is recorded of it yet.
  struct Arriving {
    explicit Arriving(Loop& loop) : changed(loop) {}
    Signal changed;
    bool is_cancelled = false;
  };
  class Arrival;

  struct Forwarding {
    explicit Forwarding(Loop& loop) : changed(loop) {}
    Signal changed;
    bool is_told = false;     // the user knows of the job: it is not withdrawn any more
    bool is_settled = false;  // `result` is what the submitter is told
    absl::Status result;
    std::vector<std::string> warnings;  // of the queue server, to the submitter

    void Settle(const absl::Status& status) {
      is_told = is_settled = true;
      result = status;
      changed.Notify();
    }
  };

  static awaitable<absl::Status> UntilCancelled(std::shared_ptr<Arriving> arriving);
  bool CancelArriving(const std::string& job_id);
  void Record(proto::JobEvent event);
  void Store(const proto::JobEvent& event);
  void Publish(uint64_t row, const proto::JobEvent& event);
  void PublishOfElement(const std::string& job_id);
  void TakeEvent(const proto::JobEvent& event);
  // What the queue server says of our jobs, beside what their events have: jobs_reconcile.cc.
  using Behind = std::map<std::string, uint64_t>;  // jobs, by the last event of each that we have
  awaitable<void> Reconcile();
  awaitable<Behind> Compare();
  void EndLost(const std::string& job_id);
  void Withdraw(const std::string& job_id);
  void StartForwarding(const proto::JobEvent& submitted);
  awaitable<void> Forward(std::string job_id, proto::SignedRequest request,
                          std::shared_ptr<Forwarding> forwarding);
  void RefuseForwarded(const std::string& job_id, const absl::Status& verdict, Forwarding& forwarding);
  awaitable<absl::Status> Settled(std::string job_id, std::shared_ptr<Forwarding> forwarding);
  void RecordSilence(const std::string& job_id, const std::string& why);
  void CancelHere(const std::string& job_id, const proto::SignedRequest& request);
  awaitable<void> DeliverCancel(std::string job_id, proto::SignedRequest request);
  awaitable<absl::StatusOr<proto::SubmitReply>> DryRun(const Caller& caller,
                                                       const proto::SignedRequest& request,
                                                       const proto::JobEvent& submitted);
  awaitable<void> Tidy();

  Loop& loop_;
  const Here here_;
  EventStore& store_;
  QueueServer& queue_;
  const Retention retention_;
  Book book_;
  std::map<std::string, proto::SignedRequest> unconfirmed_;  // found by Load, for Start
  std::map<std::string, proto::SignedRequest> undelivered_;  // likewise: what cancels a job
  std::multimap<std::string, std::shared_ptr<Arriving>> arriving_;  // by job
  std::map<std::string, std::shared_ptr<Forwarding>> forwardings_;
  std::map<std::string, std::vector<std::weak_ptr<Watcher>>> watchers_;
  Signal news_;  // something was heard of the queue server
  Trimmer trimmer_;
  Signal stands_;                        // its stream of events does, anew
  std::optional<uint64_t> follow_after_;  // once: before our position
};

}  // namespace sekisho::jobmanager
