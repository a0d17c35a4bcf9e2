// SPDX-License-Identifier: Apache-2.0
// The records that a rank's porter keeps of its connections, on their way to the queue server:
// docs/protocol/15-mpirun.md, "Links".
#pragma once

#include <cstdint>

#include "agent/outbox.h"
#include "agent/task/spec.h"
#include "agent/task_directory.h"
#include "agent/watcher.h"

namespace sekisho::agent {

class LinkRecords {
 public:
  // All outlive this.
  LinkRecords(const TaskDirectory& directory, const task::Spec& spec, Watcher& watcher,
              Outbox& outbox);
  ~LinkRecords();
  LinkRecords(const LinkRecords&) = delete;
  LinkRecords& operator=(const LinkRecords&) = delete;

  // What is new goes out; after a Welcome all of it again.
  void Pump();
  void Resume();

 private:
  const TaskDirectory& directory_;
  const task::Spec& spec_;
  Watcher& watcher_;
  Outbox& outbox_;
  int watch_ = -1;
  uint64_t sent_ = 0;
};

}  // namespace sekisho::agent
