// SPDX-License-Identifier: Apache-2.0
// All jobs of the site and what happens to them: docs/protocol/5-queue.md.  Pure: time is an
// argument, what must be stored or sent comes back as Effects, and replaying the stored events
// makes the same queue.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/asked.h"
#include "common/job_array.h"
#include "common/status.h"
#include "qserver/job.h"
#include "qserver/tasks.h"

namespace sekisho::qserver {

// A request that was verified and understood: it becomes a job unless it can never run.
struct Admitted {
  proto::JobEvent::Submitted submitted;  // rsl evaluated: no variables are left in it
  std::string job_id;
  std::string gatekeeper_subject;
  bool has_input = false;
  bool is_dry_run = false;
  int64_t commit_within_s = 0;  // RSL two_phase
  bool has_stage_in = false;
  bool has_stage_out = false;
  bool awaits_credential = false;
  google::protobuf::RepeatedPtrField<proto::RequestBody::ClientFile> files;
  bool is_held = false;         // RSL hold
  std::vector<std::string> after, after_any;
  uint64_t asked = 0;  // AskedBy its request
  proto::Demand demand;
  std::optional<proto::Charter> charter;
};

class Queue {
 public:
  // `public_subjects`: Census'.
  explicit Queue(TaskSettings settings, int64_t wall_time_max_s, std::set<std::string> public_subjects = {})
      : settings_(std::move(settings)), wall_time_max_s_(wall_time_max_s), census_(std::move(public_subjects)) {}

  // ---- At start: what the store remembers, in its order.  `has_ended`: its end is among it.
  absl::Status Replay(const proto::JobEvent& event, bool has_ended = false);
  // After the last: `spooled` tells the sizes of a task's spooled streams.  Jobs that this version
  // does not understand end.
  using SpoolSize = std::function<uint64_t(const std::string& job_id, int task, int stream)>;
  Effects FinishReplay(const SpoolSize& spooled, int64_t now_ms);

  const Job* Find(const std::string& job_id) const;
  proto::JobStatus StatusOf(const std::string& job_id) const;  // UNKNOWN if there is none
  // What a subject's jobs take here.
  struct Usage {
    int live = 0;        // wait or run
    uint64_t bytes = 0;  // of the descriptions of all that are kept
  };
  Usage UsageOf(const std::string& subject) const;
  size_t pending_count() const { return pending_.size(); }
  size_t running_count() const { return holding_.size(); }
  const Census& census() const { return census_; }
  // Processors that the allocator's leases hold: not of jobs whose tasks are over.
  std::map<std::string, int> BusyByNode() const;

  // ---- The allocator.  What it is to be asked now; `proposed` are not jobs yet.
  struct NodeView {
    std::string name;
    double load = 0;
    std::string architecture;
    std::string os;
    int64_t memory_mb = 0;
    bool is_drained = false;
  };
  // kFew: of jobs that ask alike only as many as may have room by now, since the first that waits tells of those behind.
  enum class Breadth { kAll, kFew };
  proto::DecideRequest Ask(int64_t now_ms, const std::vector<NodeView>& attached,
                           const std::vector<const proto::Demand*>& proposed, Breadth breadth = Breadth::kAll) const;
  // Whether jobs that it was not asked about may start as well, as it has decided.  Before the decisions are obeyed.
  bool HasMoreToAsk(const proto::DecideRequest& request, const proto::DecideReply& reply) const;
  // A proposed job's decision (start or wait; none: the allocator did not answer) makes it a job.
  Effects Accept(const Admitted& admitted, const proto::Decision* decision, int64_t now_ms);
  // The order to see, without running it, whether a job's first task could start on `node`.
  Effects::Outgoing Trial(const Admitted& admitted, const std::string& trial_id,
                          const std::string& node) const;
  // A waiting job's decision.  kFew: of those that wait only the first reason of each is recorded.
  Effects OnDecision(const proto::Decision& decision, int64_t now_ms, Breadth breadth = Breadth::kAll);

  // ---- Arrays: queue_arrays.cc.  Also for an element that does not exist yet: its array.
  const Job* FindOrArray(const std::string& job_id) const;
  // Null also if it is another subject's: nobody can tell the two apart.
  const Job* FindOrArray(const std::string& job_id, const std::string& subject) const;

  // ---- A batch system, for the jobs that ask for it: queue_engine.cc.
  Effects AcceptForEngine(const Admitted& admitted, int64_t now_ms);
  Effects OnEngineTook(const std::string& job_id, const std::string& engine_job,
                       const std::string& reason, int64_t now_ms);
  Effects OnEngineReason(const std::string& job_id, const std::string& reason, int64_t now_ms);
  // Its pilots have come, in this order: its tasks may start.
  Effects OnEngineStart(const std::string& job_id, const std::string& engine,
                        const std::vector<proto::Placement>& placement, int64_t now_ms);
  // It is over there: what has not said how it ended never will.
  Effects OnEngineEnded(const std::string& job_id, const std::string& reason, int64_t now_ms);
  std::vector<const Job*> EngineJobs() const;  // that wait or run

  // ---- The agents.
  // `node` is one whose stream stands; Effects' messages to others are for nobody.
  void SetAttached(const std::string& node, bool is_attached);
  Effects OnAttached(const std::string& node, const proto::AgentMessage::Hello& hello,
                     int64_t now_ms);
  // Said again on the stream that stands: what is missing twice in a row is judged as at the attach.
  Effects OnHelloAgain(const std::string& node, const proto::AgentMessage::Hello& hello, int64_t now_ms);
  proto::ServerMessage::Welcome Welcome(const std::string& node,
                                        const proto::AgentMessage::Hello& hello) const;
  Effects OnStarted(const std::string& node, const proto::TaskKey& key, int64_t now_ms);
  Effects OnExited(const std::string& node, const proto::AgentMessage::Exited& exited,
                   int64_t now_ms);
  // After the spool holds `size` bytes.
  Effects OnSpooled(const proto::TaskKey& key, int stream, uint64_t size, int64_t now_ms);
  // There is no room for more of its output: the job fails.
  Effects OnSpoolFull(const proto::TaskKey& key, int64_t now_ms);
  // Ends what was cancelled and whose output does not come: a job cannot hold its processors by
  // making bytes vanish that its node has announced.
  Effects EndStalled(int64_t now_ms);

  // ---- Helpers of an mpirun: queue_helpers.cc.
  Effects OnLaunch(const std::string& node, const proto::AgentMessage::Launch& launch);
  Effects OnLaunchInput(const std::string& node, const proto::AgentMessage::LaunchInput& input);
  Effects OnHelperOutput(const std::string& node, const proto::AgentMessage::Output& output);
  Effects OnLaunchTaken(const std::string& node, const proto::AgentMessage::LaunchTaken& taken);
  Effects OnHelperInputTaken(const std::string& node, const proto::AgentMessage::InputTaken& taken);
  Effects OnHelperStarted(const std::string& node, const proto::TaskKey& key);
  Effects OnHelperExited(const std::string& node, const proto::AgentMessage::Exited& exited);

  // ---- Parts of worlds: queue_parts.cc.
  Effects OnReady(const std::string& node, const proto::TaskKey& key);
  Effects OnFence(const std::string& node, const proto::RankFence& fence, int64_t now_ms);
  // A leader's order, whose signature was verified.
  absl::StatusOr<Effects> OnOrder(const std::string& job_id, const proto::Order& order, int64_t now_ms);
  // A call of the part's leader has begun, or ended.
  void SetLed(const std::string& job_id, bool is_led);
  // Parts that no leader has released in time.
  Effects EndUnreleased(int64_t now_ms);
  // Released ones whose leader is away for good: nobody else answers their ranks.  `steady_ms` as below.
  Effects EndUnled(int64_t steady_ms, int64_t now_ms);
  // Those of worlds over several sites whose nodes have been away for too long.  To be asked often; `steady_ms` never
  // jumps.
  Effects EndUnheard(int64_t steady_ms, int64_t now_ms);

  // ---- The users.  Their right to it was verified.
  absl::StatusOr<Effects> Cancel(const std::string& job_id, const std::string& reason,
                                 int64_t now_ms);
  absl::StatusOr<Effects> Suspend(const std::string& job_id, int64_t now_ms);
  absl::StatusOr<Effects> Resume(const std::string& job_id, int64_t now_ms);
  absl::Status SetPriority(const std::string& job_id, int priority);
  // Of all jobs of an account, beside their own.
  void SetAccountPriorities(std::map<std::string, int> priorities);

  // ---- What does not start yet: queue_holds.cc.
  absl::StatusOr<Effects> Hold(const std::string& job_id, const std::string& by, int64_t now_ms);
  absl::StatusOr<Effects> LetGo(const std::string& job_id, int64_t now_ms);
  // A new job's `after` and `after_any`: jobs of its own subject that have not failed it already.
  absl::Status CheckAfter(const Admitted& admitted) const;

  // ---- Jobs that may not start before their users say so: queue_commit.cc.
  absl::StatusOr<Effects> Commit(const std::string& job_id, int64_t now_ms);
  absl::StatusOr<Effects> ExtendCommit(const std::string& job_id, int64_t seconds, int64_t now_ms);
  // May what is kept of it go?  Its user has all.
  absl::Status CheckCommitEnd(const std::string& job_id) const;
  // Those for which that was not said in time; when the next one's time is over.
  Effects EndUncommitted(int64_t now_ms);
  std::optional<int64_t> NextCommitBy() const;

  // ---- Jobs whose files come first: queue_staging.cc.
  std::vector<std::string> StagingJobs() const;
  // It still waits, for this reason.
  Effects OnStillStaging(const std::string& job_id, const std::string& reason, int64_t now_ms);
  Effects OnStagedIn(const std::string& job_id, int64_t now_ms);
  Effects OnStagingFailed(const std::string& job_id, const absl::Status& why, int64_t now_ms);
  // Those whose files have not come within `wait_ms`.
  Effects EndUnstaged(int64_t wait_ms, int64_t now_ms);

  // ---- Jobs whose files go out after the run: queue_stage_out.cc.
  std::vector<std::string> StagingOutJobs() const;
  // Its tasks have run, however they ended: what they wrote goes out, and if they ended well its files.
  bool HasSpoken(const std::string& job_id) const;
  // Is this one of what goes out still to go?
  bool IsToGo(const std::string& job_id, int number, bool is_stream) const;
  // It still does, for this reason.
  Effects OnStillStagingOut(const std::string& job_id, const std::string& reason, int64_t now_ms);
  Effects OnStagedOut(const std::string& job_id, proto::StagedFile file, int64_t now_ms);
  // A stream of its output goes elsewhere: JudgeRedirection's word.
  Effects Redirect(const std::string& job_id, proto::JobEvent::Redirected redirected, int64_t now_ms);
  // All are where they were to go, or one cannot be; the job ends.
  Effects OnStageOutDone(const std::string& job_id, const absl::Status& status, int64_t now_ms);

  // ---- Jobs whose tasks have a credential: queue_credentials.cc.
  absl::Status CheckDelegate(const std::string& job_id) const;  // may it be given one, or another, now?
  Effects OnDelegated(const std::string& job_id, proto::JobEvent::Delegated delegated, int64_t now_ms);
  // Those whose credential ends within `ahead_ms`: once each.
  Effects TellOfEndingCredentials(int64_t ahead_ms, int64_t now_ms);
  std::optional<int64_t> NextCredentialEnd() const;  // of those
  // At a restart: ended jobs whose credential may still be there, and be good for something.
  std::vector<std::string> LeftCredentials(int64_t now_ms) const;

  // A subject's that have not ended; arrays, not their elements.
  std::vector<std::string> LiveJobsOf(const std::string& normalized_subject) const;
  // An administrator's word: the node will not come back.  Its jobs, and how they fail.
  std::vector<std::string> JobsOn(const std::string& node) const;
  Effects DeclareLost(const std::string& node, const std::string& reason, int64_t now_ms);

  // Some `most` of the jobs that ended before `before_ms`, oldest end first, without those that are passed over.
  using PassesOver = std::function<bool(const std::string& job_id)>;
  std::vector<std::string> EndedBefore(int64_t before_ms, size_t most = SIZE_MAX,
                                       const PassesOver& passes_over = nullptr) const;
  void Forget(const std::string& job_id);

 private:
  using Order = std::pair<int, uint64_t>;  // -priority, arrival

  Job* FindMutable(const std::string& job_id);
  void Emit(Job& job, proto::JobEvent event, int64_t now_ms, Effects& effects);
  absl::Status Fold(Job& job, const proto::JobEvent& event);
  void StageOutOrEnd(Job& job, int64_t now_ms, Effects& effects);
  void EndStaging(const std::string& job_id, const absl::Status& why, int64_t now_ms, Effects& effects);
  void Adopt(Job& job, Admitted admitted);
  // What the event of a job means to the array that it is an element of.
  static void FoldIntoArray(Job& job, ElementIs before, bool had_processors);
  std::shared_ptr<const proto::Demand> ShareDemand(proto::Demand demand);
  void WaitAt(Job& job, const std::string& resource);
  static void AddDemand(const Job& job, std::string job_id, proto::DecideRequest& request);
  void AskForElements(const Job& array, int most, proto::DecideRequest& request) const;
  Job& MakeElement(Job& array, int index, int64_t now_ms, Effects& effects);
  Job& AddElement(Job& array, const proto::JobEvent& submitted, bool is_archived);
  Job* FindOrMake(const std::string& job_id, int64_t now_ms, Effects& effects);
  void CancelArray(Job& array, int64_t now_ms, Effects& effects);
  void BeginArray(Job& job, int64_t now_ms, Effects& effects);
  void EndArrayIfComplete(Job& array, int64_t now_ms, Effects& effects);
  static std::string RslOf(const Job& job);
  static bool HasItsFill(const Job& element);  // the array's elements have all the processors that they may
  void RecordWait(Job& job, const proto::Decision& decision, Breadth breadth, int64_t now_ms, Effects& effects);
  void OnElementDecision(const proto::Decision& decision, Breadth breadth, int64_t now_ms, Effects& effects);
  absl::Status ReplayElement(const proto::JobEvent& event, bool has_ended);
  static bool IsKeptBack(const Job& job);
  // Waits for processors, or waits no more.
  void Place(Job& job);
  void PlaceAll(Job& job);  // and its elements
  Order OrderOf(const Job& job) const;
  void Follow(Job& job, const Admitted& admitted);
  void FreeFollowers(const Job& ended);
  void FreeFollowersOf(const std::string& job_id, const proto::JobStatus& status);
  void EndDoomed(int64_t now_ms, Effects& effects);
  static std::string WhyItWaits(const Job& job);
  void GiveProcessors(Job& job);
  void AwaitCommit(Job& job, int64_t until_ms);
  void NoteCredential(Job& job, int64_t until_ms);
  void Start(Job& job, const proto::Lease& lease, int64_t now_ms, Effects& effects);
  // To all nodes if `node` is empty.
  void SendStarts(const Job& job, const std::string& node, bool only_unstarted,
                  Effects& effects) const;
  void EndTask(Job& job, int number, const std::string& reason, int gram_code, int64_t now_ms,
               Effects& effects);
  void EndTheRest(Job& job, int64_t now_ms, Effects& effects);
  void LoseNode(Job& job, const std::string& node, const std::string& reason, int64_t now_ms, Effects& effects);
  void KillAll(const Job& job, int signal, int64_t grace_ms, Effects& effects) const;
  void EndIfComplete(Job& job, int64_t now_ms, Effects& effects);
  void End(Job& job, proto::JobEvent::Ended ended, int64_t now_ms, Effects& effects);
  void Compare(const std::string& node, const proto::AgentMessage::Hello& hello, bool is_again, int64_t now_ms,
               Effects& effects);
  static void GiveTime(Job& job, const std::string& node, bool is_again, std::vector<int>& held);
  void Reconcile(Job& job, const std::string& node, const std::string& boot_id, const std::vector<int>& held,
                 bool is_again, int64_t now_ms, Effects& effects);
  void SendToRanks(const Job& job, const std::string& node, const proto::ServerMessage& message,
                   Effects& effects) const;
  void CancelInto(const std::string& job_id, const std::string& reason, int64_t now_ms, Effects& effects);
  static void ReportReady(Job& job);
  static void ReportFailure(Job& job, int task, const proto::AgentMessage::Exited& exited);
  static void ReportEnd(Job& job, const proto::JobEvent::Ended& ended);
  static bool IsHeldBack(const Job& job, int task);
  void MeetHelpers(Job& job, const std::string& node, const proto::AgentMessage::Hello& hello, bool is_again,
                   Effects& effects);
  void MeetHelper(Job& job, const HelperKey& key, bool is_held, Effects& effects);
  void StartHelper(Job& job, const std::string& node, const proto::AgentMessage::Launch& launch, Effects& effects);
  void TakeUp(const std::string& node, const proto::AgentMessage::Launch& launch, Effects& effects);
  void ForgetLeft(Job& job, const HelperKey& key, Effects& effects);
  Helper* FindHelper(const std::string& node, const proto::TaskKey& key);
  std::pair<Job*, HelperKey> FindLaunch(const std::string& node, uint64_t id, const std::string& job_id);
  static void EndHelperIfComplete(const Helper& helper, Effects& effects);

  const TaskSettings settings_;
  const int64_t wall_time_max_s_;
  std::set<std::string> gatekeepers_;  // by subject
  std::set<std::string> resources_;    // where jobs were told to wait
  std::unordered_map<std::string, std::weak_ptr<const proto::Demand>> demands_;  // by their bytes
  std::unordered_map<std::string, std::unique_ptr<Job>> jobs_;
  std::map<Order, Job*> pending_;        // waits for processors
  std::map<std::string, Job*> holding_;  // has processors
  std::set<std::string> staging_;        // wait for their files, in neither of the two
  std::set<std::string> staging_out_;
  std::set<std::pair<int64_t, std::string>> uncommitted_;  // in neither, by when their time is over
  std::set<std::pair<int64_t, std::string>> credentials_;  // of live jobs, by their ends, until that is told
  std::map<std::string, std::pair<std::string, HelperKey>> launches_;  // by name: job and helper
  std::multimap<int64_t, std::string> ended_;
  struct Follower {
    std::string job_id;
    bool takes_any = false;  // also what has failed
  };
  std::multimap<std::string, Follower> followers_;  // by the job that has to end first
  std::vector<std::pair<std::string, std::string>> doomed_;  // jobs that never can start, and why
  bool ends_doomed_ = false;  // just now
  bool followers_freed_ = false;  // since somebody last looked
  std::map<std::string, int> account_priorities_;
  Census census_;
  std::unordered_map<std::string, Usage> usage_;  // by subject
  std::set<std::string> attached_;
  std::set<std::string> relaunching_;  // nodes whose agents know that launches are said again, as they last said
  std::map<std::string, int64_t> unheard_;  // nodes with ranks that are not attached, and from when on that counts
  bool looks_for_unheard_ = false;
  std::map<std::string, std::string> boots_;  // of nodes, as they last said
  uint64_t next_order_ = 1;
};

// Nodes of the placement.
bool HasNode(const proto::JobStatus& status, const std::string& node);

}  // namespace sekisho::qserver
