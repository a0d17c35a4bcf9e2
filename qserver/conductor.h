// SPDX-License-Identifier: Apache-2.0
// Does what the queue says: stores its events, sends its messages, asks the allocator, keeps the
// spool. All on the loop's thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/event_store.h"
#include "common/loop.h"
#include "qserver/accounting_sync.h"
#include "qserver/allocator_link.h"
#include "qserver/journal.h"
#include "qserver/queue.h"
#include "qserver/relay_renewal.h"
#include "qserver/restrictions.h"
#include "qserver/spool.h"

namespace sekisho::qserver {

class EndHook;
class EngineDriver;
class RelayTokens;
class Staging;

// An agent whose stream stands.
struct NodeLink {
  proto::AgentMessage::Hello hello;
  proto::AgentMessage::Load load;
  std::function<void(proto::ServerMessage)> send;
  uint64_t generation = 0;
};

// The standard input of one job, of its task 0 or its rank 0, as far as it is on its way.
struct InputProgress {
  uint64_t sent = 0;
  uint64_t taken = 0;
  bool has_ended = false;   // and the task's node has the end
  uint64_t generation = 0;  // of the node's stream by which it went
  uint64_t call = 0;        // the newest that feeds it; older ones end
};

class Conductor {
 public:
  Conductor(Loop& loop, EventStore& store, Spool& spool, AllocatorLink& allocator,
            TaskSettings settings, int64_t wall_time_max_s, std::set<std::string> public_subjects = {});
  Conductor(const Conductor&) = delete;
  Conductor& operator=(const Conductor&) = delete;

  absl::Status Restore();  // once, before anything is served
  void Run();              // starts the scheduler
  // The site has a batch system.  Before Run.
  void SetEngine(EngineDriver& engine) { engine_ = &engine; }
  // Jobs are given tokens for the site's relay.  Before Run.
  void SetRelay(RelayTokens& tokens);
  // Gives the tasks of some of the jobs whose tokens are due later ones; true: there are more.
  bool RenewTokens(identity::Time now);
  // Jobs can have files.  Before Run.
  void SetStaging(Staging& staging) { staging_ = &staging; }
  // Each job's end is a line there.  Before Restore.
  void SetAccounting(AccountingFile& file) { accounting_.emplace(loop_, store_, file); }
  // And is told to a program of the site's.  Before Restore.
  void SetEndHook(EndHook& hook) { end_hook_ = &hook; }
  bool has_engine() const { return engine_ != nullptr; }

  const Queue& queue() const { return queue_; }
  const Journal& journal() const { return journal_; }
  // With those that the journal has cut as they are in the store; cut stays what was forgotten meanwhile.
  awaitable<absl::StatusOr<std::vector<Journal::Found>>> Complete(std::vector<Journal::Found> events);
  Spool& spool() { return spool_; }
  AllocatorLink& allocator() { return allocator_; }
  const std::map<std::string, NodeLink>& nodes() const { return nodes_; }

  void SetLed(const std::string& job_id, bool is_led) { queue_.SetLed(job_id, is_led); }
  // What follows from the change is stored, then sent.
  void Change(const std::function<Effects(Queue&)>& change) { Perform(change(queue_)); }
  // What administrators have forbidden.  Durable().
  const Restrictions& restrictions() const { return restrictions_; }
  void Restrict(const std::function<void(Restrictions&)>& change);
  // What has changed so far is on disk.
  awaitable<absl::Status> Durable();

  // ---- For jobmanagers.  A job, durably, or the reason why it can never run.  True: it was one
  // already.
  awaitable<absl::StatusOr<bool>> Submit(Admitted admitted);
  // Many, by one question to the allocator and one group commit; in their order.
  awaitable<std::vector<absl::StatusOr<bool>>> SubmitMany(std::vector<Admitted> admitted);
  awaitable<absl::Status> CheckOnNode(Admitted admitted);  // a dry run
  // What a user has said to his job.  Durable().
  absl::StatusOr<proto::JobState> Command(const proto::RequestBody& body);
  // A job's description, which an ended one has on disk only.
  awaitable<absl::StatusOr<std::string>> ReadRsl(std::string job_id);
  // Woken when something of the job, or of the account's jobs, has changed (durably, if it is an
  // event).
  std::shared_ptr<Signal> JobSignal(const std::string& job_id);
  std::shared_ptr<Signal> AccountSignal(const std::string& account);
  // Grows with every change of a job (once it is on disk) and of what nodes are attached; `site_changed`
  // is woken then.
  uint64_t site_generation() const { return site_generation_; }
  Signal& site_changed() { return site_changed_; }
  void SiteChanged();
  // What is known of the job is on disk (its end in particular).
  bool IsPublished(const std::string& job_id) const { return unpublished_.count(job_id) == 0; }
  InputProgress& input(const std::string& job_id) { return inputs_[job_id]; }
  uint64_t NextInputCall() { return next_input_call_++; }
  bool Send(const std::string& node, proto::ServerMessage message);

  // ---- For agents.
  uint64_t Attach(const proto::AgentMessage::Hello& hello,
                  std::function<void(proto::ServerMessage)> send);
  void Detach(const std::string& node, uint64_t generation);
  // False: this stream is to end; a newer one speaks for the node, or the spool failed.
  bool OnMessage(const std::string& node, uint64_t generation, const proto::AgentMessage& message);

  // Jobs that have ended since this daemon runs, by how.
  const std::map<proto::JobState, uint64_t>& ended() const { return ended_; }

  static constexpr size_t kForgottenAtOnce = 1'000;  // nobody waits long for the loop
  // Forgets some of the jobs that ended before, with their output; true: there are more.  One whose files could not be
  // removed is kept, and tried again behind all others, an hour later at the soonest.
  bool ForgetEndedBefore(int64_t time_ms, int64_t steady_ms = SteadyMs());
  void Forget(const std::vector<std::string>& jobs);  // that have ended

  static int64_t NowMs();
  static int64_t SteadyMs();  // never jumps

 private:
  struct Proposal {
    Proposal(Loop& loop, Admitted admitted) : admitted(std::move(admitted)), done(loop) {}
    Admitted admitted;
    Signal done;
    bool is_done = false;
    absl::Status result;
    std::string node;  // for a dry run
  };
  struct Batch {
    Effects effects;
    std::vector<std::shared_ptr<Proposal>> proposals;  // answered when it is durable
  };

  // A submission under way.
  struct Ticket {
    absl::Status refusal;
    std::shared_ptr<Proposal> proposal;  // null: it is a job already
    bool is_repeat = false;
  };
  Ticket Propose(Admitted admitted);
  awaitable<absl::StatusOr<bool>> Redeem(Ticket ticket);
  void RequestPass();
  awaitable<void> Schedule();
  awaitable<void> EndStalled();
  awaitable<void> EndUnheard();
  awaitable<void> EndUncommitted();
  awaitable<bool> Pass();
  Queue::Breadth BreadthOfPass();
  std::vector<Queue::NodeView> Views() const;
  awaitable<absl::StatusOr<std::string>> NodeToCheckOn(std::shared_ptr<Proposal> proposal);
  void Decided(const std::shared_ptr<Proposal>& proposal, const proto::Decision* decision,
               Batch& batch);
  bool AreAttached(const proto::Lease& lease) const;
  void Perform(Effects effects) { Perform(Batch{std::move(effects), {}}); }
  void Perform(Batch batch);
  awaitable<void> Commit();
  static bool MayWait(const Batch& batch);
  void Account(const Job& job, const proto::JobEvent& ended);
  void TellEngine(const Job& job, const proto::JobEvent& event);
  void Publish(Batch batch);
  void WakeJobs();
  void AddRelay(proto::ServerMessage::Start& start);
  void ForgetTokens(const Job& ended);
  absl::Status RenewTokensOf(const std::string& job_id, identity::Time now);
  void NoteReturn(const proto::AgentMessage::Hello& hello);
  awaitable<void> RenewRelay();
  void StorePriorities();
  bool OnOutput(const std::string& node, const proto::AgentMessage::Output& output);
  void OnInputTaken(uint64_t generation, const proto::AgentMessage::InputTaken& taken);
  void OnLinks(const std::string& node, const proto::AgentMessage::Links& links);
  void OnHelloAgain(const std::string& node, const proto::AgentMessage::Hello& hello);
  bool OnCheckEnded(const std::string& node, const proto::AgentMessage& message);

  Loop& loop_;
  EventStore& store_;
  Spool& spool_;
  AllocatorLink& allocator_;
  EngineDriver* engine_ = nullptr;
  RelayTokens* relay_ = nullptr;
  std::optional<RelayRenewal> renewal_;  // with relay_
  Staging* staging_ = nullptr;
  EndHook* end_hook_ = nullptr;
  Queue queue_;
  Restrictions restrictions_;
  Journal journal_;

  std::map<std::string, NodeLink> nodes_;
  uint64_t next_generation_ = 1;
  std::map<std::string, InputProgress> inputs_;
  uint64_t next_input_call_ = 1;
  std::map<proto::JobState, uint64_t> ended_;
  std::map<std::string, int64_t> removals_;               // of ended jobs' files: when they began, by SteadyMs
  std::map<std::string, int> priorities_;                 // that users have changed
  bool has_new_priorities_ = false;                       // that are not stored yet
  std::map<std::string, std::weak_ptr<Signal>> signals_;  // "job ID", "account NAME"
  struct Check {
    explicit Check(Loop& loop) : done(loop) {}
    Signal done;
    bool is_done = false;
    proto::AgentMessage::Exited exited;
  };
  std::map<std::string, std::shared_ptr<Check>> checks_;  // by the name of the trial task's job

  uint64_t site_generation_ = 1;
  Signal site_changed_;
  Signal pass_wanted_;
  bool is_pass_due_ = false;
  std::chrono::steady_clock::time_point full_pass_at_;  // not before
  asio::steady_timer full_pass_;
  std::vector<std::shared_ptr<Proposal>> proposals_;
  std::map<std::string, std::shared_ptr<Proposal>> undecided_;  // by job, until the queue has it or not
  Signal commit_wanted_;
  std::deque<Batch> batches_;               // their events are with the store, in this order
  std::multiset<std::string> unpublished_;  // jobs of those events

  std::optional<AccountingSync> accounting_;  // first to go: it waits for a thread that writes
};

}  // namespace sekisho::qserver
