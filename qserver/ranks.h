// SPDX-License-Identifier: Apache-2.0
// From a part of a world to the ranks that agents start: docs/protocol/15-mpirun.md, "Ranks". Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/status.h"
#include "proto/job.pb.h"
#include "proto/nodes.pb.h"
#include "qserver/tasks.h"
#include "rsl/job_description.h"

namespace sekisho::qserver {

// The world's number of a task: as its user ordered it, else as the release says, else as signed.
int RankOf(const proto::Charter& charter, const proto::Order::Release& release, int task);

// The task that the job's standard input goes to: rank 0, if the charter orders the ranks and it is here.
int InputTask(const proto::Charter* charter);

// Of a world that encrypts: does its user know us by our own name?  The ranks at other sites will not, else.
absl::Status CheckSpeaker(const proto::Charter& charter, const std::string& site, const std::string& subject);

// A charter that such a job cannot have, or that this site cannot serve.
absl::Status CheckCharter(const proto::Charter& charter, const rsl::JobDescription& job,
                          const RelaySettings& relay);

// By when a part is to be released, by our clock: his own, which need not be ours, the user used only to say how
// long it may take from when he signed `body`.  It was submitted at `submitted_ms`.
int64_t ReadyBy(const proto::RequestBody& body, int64_t submitted_ms);

// Turns the tasks of `starts`, made for the job, into ranks of the charter's world.
void MakeRanks(const proto::Charter& charter, const rsl::JobDescription& job,
               const proto::JobStatus& status, bool is_released, const TaskSettings& settings,
               std::vector<proto::ServerMessage::Start>& starts);

}  // namespace sekisho::qserver
