// SPDX-License-Identifier: Apache-2.0
// The jobs of one account, as the fold of their events: docs/protocol/3-job-states.md.  Pure: no clock,
// no I/O.  What it accepts is the caller's to store, and their descriptions are only there: each may have
// hundreds of kilobytes.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/status.h"
#include "proto/job.pb.h"
#include "proto/job_service.pb.h"

namespace sekisho::jobmanager {

class Book {
 public:
  // Puts a stored event back in its place.
  absl::Status Replay(const proto::JobEvent& event);

  // Null if there is no such job or it is another subject's: nobody can tell the two apart.  Without site, account,
  // subject and service.
  const proto::JobStatus* Find(const std::string& job_id, const std::string& subject) const;

  // Whoever's it is: for our own work only.
  const proto::JobStatus* FindAny(const std::string& job_id) const;

  // OK with true: the same request was made before.  AlreadyExists: the same id with another RSL.
  absl::StatusOr<bool> IsRepeat(const proto::JobEvent& submitted) const;

  // Folds an event of our own making.  Its sequence number is that of the last event before it.
  absl::Status Add(proto::JobEvent& event);

  // An event that the queue server reports: true if it is new and was folded; the caller stores it.
  // A job that only the queue server knows is taken over from its `submitted`.  Of a job that was ended
  // here only its end is taken, and replaces ours.  What was passed over is taken late, unless later events of its
  // job were; a job that was forgotten does not come back.
  bool Take(const proto::JobEvent& event);

  // As if it had never been: the queue server refused it at once.
  void Withdraw(const std::string& job_id);

  proto::JobStatus Status(const std::string& job_id, const std::string& subject) const;
  // Newest first; as many as fit a message.
  proto::StatusReply List(const std::string& subject, bool with_ended) const;

  // Jobs that wait or run inside, as the queue server has said.
  std::vector<std::string> AliveInside() const;
  // The queue server's number of the last event of a job; 0: none.
  uint64_t LastSequence(const std::string& job_id) const;
  // Jobs that ended before `time_ms`.
  std::vector<std::string> EndedBefore(int64_t time_ms) const;
  // An element of one of the subject's arrays that does not exist yet, or never will.
  bool IsUnmade(const std::string& job_id, const std::string& subject) const;
  bool Has(const std::string& job_id) const { return jobs_.count(job_id) > 0; }
  // The queue server was not asked, or has not answered: what it knows of the job may differ.
  bool IsEndedHere(const std::string& job_id) const;
  size_t size() const { return jobs_.size(); }

  // The queue server's number of the newest event taken: where to go on.
  uint64_t position() const { return position_; }
  void set_position(uint64_t position) { position_ = position; }

 private:
  // What hundreds of thousands of jobs have in common.
  struct Owner {
    std::string site, account, subject, service;
    auto operator<=>(const Owner&) const = default;
  };
  struct Job {
    proto::JobStatus status;       // without its RSL, and without what its owner says
    const Owner* owner = nullptr;  // of `owners_`
    uint64_t asked = 0;            // AskedBy its submission
    uint64_t last_sequence = 0;
    bool is_ended_here = false;
  };
  static proto::JobStatus Whole(const Job& job);
  const Job* FindJob(const std::string& job_id, const std::string& subject) const;
  absl::Status FoldInto(const proto::JobEvent& event, Job& job);
  // Null if the job is no element, or its array is not known.
  Job* ArrayOf(const proto::JobStatus& job);
  std::set<Owner> owners_;
  std::map<std::string, Job> jobs_;
  uint64_t position_ = 0;
};

}  // namespace sekisho::jobmanager
