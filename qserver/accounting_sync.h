// SPDX-License-Identifier: Apache-2.0
// Ends of jobs into the accounting's file, once each, also over a crash: what the file has is known
// by the number of its last line, and by ours in the store, should somebody have moved the file
// away.
#pragma once

#include <cstdint>
#include <string>

#include <asio/thread_pool.hpp>

#include "common/event_store.h"
#include "common/loop.h"
#include "qserver/accounting.h"

namespace sekisho::qserver {

// Ends up to this number need no line any more.  `accounted`: what was on disk.  `accounted_in`:
// "NUMBER BOOT", what was written as long as the machine was up; of another boot it says nothing.
// Pure.
uint64_t AccountedUpTo(const std::string& accounted, const std::string& accounted_in,
                       const std::string& boot);

class AccountingSync {
 public:
  AccountingSync(Loop& loop, EventStore& store, AccountingFile& file)
      : loop_(loop), store_(store), file_(file) {}
  AccountingSync(const AccountingSync&) = delete;
  AccountingSync& operator=(const AccountingSync&) = delete;

  absl::Status Restore();  // once, before anything else
  // The job's last event, which `job` has folded in.
  void OnEnd(const proto::JobStatus& job, const proto::JobEvent& ended);

 private:
  awaitable<void> Sync();

  Loop& loop_;
  EventStore& store_;
  AccountingFile& file_;
  bool is_syncing_ = false;
  asio::thread_pool away_{1};  // a sync blocks
};

}  // namespace sekisho::qserver
