// SPDX-License-Identifier: Apache-2.0
// A job as the queue server holds it: the fold of its events, and what its agents have said since.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/allocation.pb.h"
#include "proto/job.pb.h"
#include "proto/nodes.pb.h"
#include "proto/world.pb.h"
#include "qserver/census.h"

namespace sekisho::qserver {

// Tasks from here on are helpers of a site's mpirun: proto/nodes.proto.
inline constexpr int kFirstHelper = 1'000'000;
inline constexpr int kHelpersEnd = 1'000'000'000;  // no helper has this number, or one above it

struct Task {
  std::string node;
  bool is_started = false;
  bool is_ended = false;
  bool is_confirmed = false;  // its agent has said, since this daemon started, how it ended
  proto::Exit exit;
  int gram_code = 0;
  std::string reason;
  int64_t cpu_ms = 0;
  int64_t max_rss_kb = 0;
  std::array<uint64_t, 2> spooled = {0, 0};   // bytes of stdout, stderr in the spool
  std::array<uint64_t, 2> expected = {0, 0};  // once it has ended
  int64_t moved_ms = 0;                       // when it ended, or output of it came later
  bool is_output_lost = false;                // there is no room for more of it
  bool is_missing = false;                    // its node's last Hello did not have it, though it was to

  bool is_complete() const {
    return is_ended && is_confirmed &&
           (is_output_lost || (spooled[0] >= expected[0] && spooled[1] >= expected[1]));
  }
};

// A process that a task's mpirun started on another node.
struct Helper {
  std::string launch;       // its name: queue_helpers.cc
  std::string asking_node;  // empty: that has not said, since a daemon or connection was lost, who waits for it
  uint64_t id = 0;          // of the launch, there
  bool is_ended = false;
  std::array<uint64_t, 2> passed_on = {0, 0};
  std::array<uint64_t, 2> expected = {0, 0};
  uint64_t input_offset = 0;
  bool is_left = false;  // its launcher has gone, or has all it waited for
  std::array<uint64_t, 2> taken = {0, 0};  // by its launcher
  proto::Exit exit;
  std::string reason;
};

using HelperKey = std::pair<std::string, int>;  // node, number there

// One whose helper's node is away: it alone knows whether it holds that helper.
struct WaitingLaunch {
  std::string node;
  std::string asking_node;
  uint64_t id = 0;
};

// What the ranks of a part give to a collective, until its leader has the whole.
struct PartFence {
  std::map<std::string, std::string> given;  // by node
  bool is_done = false;
  std::string result;
};

// What a job has that is a part of a world: queue_parts.cc.
struct Part {
  explicit Part(proto::Charter of) : charter(std::move(of)) {}

  proto::Charter charter;
  bool is_released = false;                  // its ranks may run
  proto::Order::Release release;
  std::set<int> ready;                       // tasks that stand before their exec
  std::map<std::string, PartFence> fences;   // by id
  std::vector<proto::Report> reports;        // to its leader, from the first on
  int leaders = 0;                           // calls of its leader that stand
  std::optional<int64_t> unled_from_ms;      // since when there is none; by the steady clock
};

// The reason of the event Waiting of a job that has more output than there is room for; and of its end.
// Stored, and known again by these words when the events are read: they stay as they are.
inline constexpr char kNoRoom[] = "the site has no room for more output; what came before is kept";

inline std::shared_ptr<const proto::Demand> NoDemand() {
  static const auto none = std::make_shared<const proto::Demand>();
  return none;
}

struct Job {
  proto::JobStatus status;  // fold of its events
  const std::string* gatekeeper_subject = nullptr;  // as its user's request names it; one for all jobs, the queue's
  bool has_input = false;
  uint64_t asked = 0;  // Admitted::asked
  uint64_t bytes = 0;  // of the event that made it
  uint64_t order = 0;  // of arrival
  int priority = 0;
  bool is_two_phase = false;     // its user has to say that it may start: queue_commit.cc
  int64_t commit_by_ms = 0;      // until then; 0: said, or not needed
  bool is_staging = false;       // its files are not all there: queue_staging.cc
  google::protobuf::RepeatedPtrField<proto::RequestBody::ClientFile> files;  // of its client, until they are
  bool awaits_credential = false;  // it does not start without; its user has asked for that: queue_credentials.cc
  int64_t credential_until_ms = 0; // of the one that its tasks have; 0: none yet
  bool has_stage_out = false;    // files go out, or away, after the run: queue_stage_out.cc
  bool is_staging_out = false;   // they do
  int redirections = 0;          // of its output, by its user: redirection.h
  bool has_place = false;        // it may have files of its own at its account's home
  std::shared_ptr<const proto::Demand> demand = NoDemand();  // while it waits and runs: one for all that ask alike, without names
  const std::string* resource = nullptr;        // where it was told to wait; one for all, the queue's
  int64_t ends_ms = 0;           // by its wall-time limit, once it has processors; 0 = not limited
  bool has_processors = false;   // of the allocator, until it has ended
  bool is_output_lost = false;   // of a task: it fails by that
  bool is_archived = false;      // replayed, and known to have ended: its description is not looked at
  std::string unreadable;        // why its stored description cannot be understood any more
  bool are_starts_held = false;  // all but task 0 wait until it has emptied the common output file
  std::vector<Task> tasks;       // by number, once it has processors
  std::map<HelperKey, Helper> helpers;
  std::map<std::string, WaitingLaunch> waiting_launches;  // by name
  int next_helper = kFirstHelper;            // above all that its nodes have ever said they hold
  std::map<std::string, std::string> boots;  // by node: the boot under which it was told to start
  bool was_suspended = false;
  std::unique_ptr<Part> part;                // if it is one
  std::set<std::string> waits_for;  // jobs that have to end first: queue_holds.cc
  Job* array = nullptr;     // it is an element of that: queue_arrays.cc
  std::map<int, Job*> elements;  // those that exist, by index
  int64_t next_element = 0;      // all below exist
  int elements_at_work = 0;      // have processors
  bool has_engine = false;  // a batch system says when and where it runs: engine.h
  Census::Mark mark;        // what it is counted as

  const proto::Charter* charter() const { return part ? &part->charter : nullptr; }
};

// What follows from something that happened: durable first, then sent.
struct Effects {
  struct Outgoing {
    std::string node;
    proto::ServerMessage message;
  };
  std::vector<proto::JobEvent> events;
  std::vector<Outgoing> messages;
  bool is_pass_due = false;  // the allocator may decide anew

  void Add(Effects more) {
    std::move(more.events.begin(), more.events.end(), std::back_inserter(events));
    std::move(more.messages.begin(), more.messages.end(), std::back_inserter(messages));
    is_pass_due |= more.is_pass_due;
  }
  proto::ServerMessage& To(const std::string& node) {
    messages.emplace_back().node = node;
    return messages.back().message;
  }
  void Kill(const std::string& node, const std::string& job_id, int signal, int64_t grace_ms) {
    proto::ServerMessage::Kill& kill = *To(node).mutable_kill();
    kill.set_job_id(job_id);
    kill.set_signal(signal);
    kill.set_grace_ms(grace_ms);
  }
  void Forget(const std::string& node, const std::string& job_id) { To(node).mutable_forget()->set_job_id(job_id); }
};

}  // namespace sekisho::qserver
