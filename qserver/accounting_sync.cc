// SPDX-License-Identifier: Apache-2.0
#include "qserver/accounting_sync.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "common/away.h"
#include "common/log.h"
#include "common/refusal.h"

namespace sekisho::qserver {
namespace {

// Numbers of the last end in the file: on disk, and as long as the machine is up.
constexpr char kAccounted[] = "accounted";
constexpr char kAccountedIn[] = "accounted_in";
constexpr std::chrono::seconds kSyncEvery{1};
constexpr std::chrono::seconds kSyncAgain{60};  // what could not be

// Of the machine: while it is the same, what was written is there, on disk or not.
const std::string& BootId() {
  static const std::string id = [] {
    std::string text;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
    return text;
  }();
  return id;
}

}  // namespace

uint64_t AccountedUpTo(const std::string& accounted, const std::string& accounted_in,
                       const std::string& boot) {
  const uint64_t on_disk = std::strtoull(accounted.c_str(), nullptr, 10);
  std::istringstream words(accounted_in);
  uint64_t written = 0;
  std::string written_in;
  const bool is_known = words >> written >> written_in && written_in == boot;
  return is_known ? std::max(on_disk, written) : on_disk;
}

absl::Status AccountingSync::Restore() {
  ASSIGN_OR_RETURN(const std::string accounted, store_.Value(kAccounted));
  ASSIGN_OR_RETURN(const std::string accounted_in, store_.Value(kAccountedIn));
  file_.SkipTo(AccountedUpTo(accounted, accounted_in, BootId()));
  return absl::OkStatus();
}

void AccountingSync::OnEnd(const proto::JobStatus& job, const proto::JobEvent& ended) {
  if (!file_.Wants(ended.sequence()) ||
      !file_.Write(ended.sequence(), AccountingLine(job, ended))) {
    return;
  }
  store_.Put(kAccountedIn, fmt::format("{} {}", ended.sequence(), BootId()));
  if (!std::exchange(is_syncing_, true)) {
    co_spawn(loop_, Sync(), Vital("the accounting's sync"));
  }
}

// The lines first, then how far they go: a power cut must not leave the number of one that it has
// taken.
awaitable<void> AccountingSync::Sync() {
  while (file_.has_unsynced()) {
    const AccountingFile::Unsynced unsynced = file_.TakeUnsynced();
    for (bool is_on_disk = false; !is_on_disk;) {
      auto sync = unsynced.sync;
      const absl::Status status = co_await Away(loop_, away_, std::move(sync));
      is_on_disk = status.ok();
      if (is_on_disk) {
        store_.Put(kAccounted, std::to_string(unsynced.sequence));
      } else {
        spdlog::error("the accounting may miss lines after a power cut: {}", Message(status));
      }
      const std::chrono::seconds pause = is_on_disk ? kSyncEvery : kSyncAgain;
      co_await Sleep(loop_, pause);  // what comes meanwhile goes together
    }
  }
  is_syncing_ = false;
}

}  // namespace sekisho::qserver
