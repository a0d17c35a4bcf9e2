// SPDX-License-Identifier: Apache-2.0
// From a job and its processors to the processes that agents start: docs/protocol/5-queue.md,
// "Tasks". Pure.
#pragma once

#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "proto/nodes.pb.h"
#include "rsl/job_description.h"

namespace sekisho::qserver {

struct MpiSettings {
  std::string mpich;
  std::string mpich_preload;  // a library for MPICH's ranks, see mpich_finalize.c; empty: none
  std::string openmpi;
  std::string remote_shell;
  bool is_openmpi = false;
  std::string rank_program;  // what each rank of a world runs under, agent/rank; empty: nothing
};

// The site's relay, where ranks of several sites meet: docs/protocol/15-mpirun.md.
struct RelaySettings {
  std::string address;  // as others reach it; empty: there is none
  std::string inner;    // what the nodes reach in its place, and nothing else outside; empty: they dial out
  std::string porter;   // sekisho-nxporter, as the nodes have it
  // Networks of other sites that the nodes dial by themselves, A,B; and of them those where nothing translates addresses.
  std::string direct = {};
  std::string direct_untranslated = {};
  bool is_reversed = false;  // nodes elsewhere dial ours

  const std::string& OfNodes() const { return inner.empty() ? address : inner; }
};

struct TaskSettings {
  std::string site;
  std::string ca_directory;
  MpiSettings mpi;
  RelaySettings relay;
  int64_t leader_silence_s = 1800;  // a part whose leader has said nothing for longer ends
};

// How many processes the queue server starts itself: `count` for multiple, else one.
int TaskCount(const rsl::JobDescription& job);

// The node of each task: the placement's nodes in order, each filled before the next.
std::vector<std::string> TaskNodes(
    const rsl::JobDescription& job,
    const google::protobuf::RepeatedPtrField<proto::Placement>& placement);

// Bytes of arguments and environment of one task.
size_t TaskBytes(const rsl::JobDescription& job);

// One Start a task, by number; `status` has a placement.
std::vector<proto::ServerMessage::Start> MakeStarts(const proto::JobStatus& status,
                                                    const rsl::JobDescription& job, bool has_input,
                                                    const std::string& job_contact,
                                                    int64_t wall_limit_s,
                                                    const TaskSettings& settings);

// https://HOST:2119/JOB/, with the host that the gatekeeper's subject names.
std::string JobContact(const std::string& gatekeeper_subject, const std::string& job_id);
std::string HostOfSubject(const std::string& subject);

}  // namespace sekisho::qserver
