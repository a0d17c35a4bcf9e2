// SPDX-License-Identifier: Apache-2.0
// Brings jobs' files to where they are to be: takes what clients send, has stagers put it in place, and tells the
// queue.  docs/protocol/17-staging.md.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/loop.h"
#include "common/newest_call.h"
#include "common/rpc_server.h"
#include "proto/files.pb.h"
#include "qserver/conductor.h"
#include "qserver/stage_plan.h"
#include "qserver/stager_link.h"

namespace sekisho::qserver {

class Staging {
 public:
  struct Settings {
    std::string program;  // sekisho-stager
    StagingRules rules;
    uint64_t cache_bytes = uint64_t{10} << 30;  // of an account
    std::chrono::milliseconds wait{std::chrono::hours(24)};  // for a job's files
    std::chrono::milliseconds try_again{10'000};  // what could not be begun
    std::chrono::milliseconds credential_notice{std::chrono::minutes(20)};  // so long before a job's one ends
  };
  Staging(Loop& loop, Conductor& conductor, Settings settings)
      : loop_(loop), conductor_(conductor), settings_(std::move(settings)), changed_(loop) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void Run();  // once, after the conductor's Restore
  // It has a job, on disk, that waits for files.
  void OnStaging(const std::string& job_id);

  // Its tasks have ended, on disk, and its files go where they are to go.
  void OnStagingOut(const std::string& job_id);
  // It has ended long ago: once its files are gone the conductor forgets it.
  void OnForgetting(const std::string& job_id);

  // ---- Jobs' credentials: staging_credentials.cc.  In place of the one before, if there is one; durable.
  awaitable<absl::Status> PlaceCredential(std::string job_id, std::string text, proto::JobEvent::Delegated delegated);
  // Its job has ended, on disk.
  void OnCredentialUnneeded(const std::string& job_id);

  // A client sends a job's files.  A newer call ends an older one.
  using UploadCall = rpc::Duplex<proto::UploadRequest, proto::UploadReply>;
  awaitable<absl::Status> Take(UploadCall& call, std::string job_id);

  // ---- A job's directory, while it runs and after: staging_files.cc.  Who asks has the right to.
  using FilesWriter = rpc::Writer<proto::FilePiece>;
  awaitable<absl::Status> Show(FilesWriter& writer, proto::RequestBody::FileAccess access);
  awaitable<absl::Status> TakeWrite(UploadCall& call, proto::RequestBody::FileAccess access);

 private:
  // So many stagers an account, and all together; more wait.  Whoever looks at files takes none of those that jobs need: he
  // may look for long.  A credential waits for no transfer: it may end before that.
  enum class Purpose { kJob, kUser, kCredential };
  class Slot {
   public:
    Slot(Staging& staging, std::string account, Purpose purpose = Purpose::kJob)
        : staging_(staging), account_(std::move(account)), purpose_(purpose) {}
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    awaitable<void> Take();

   private:
    Staging& staging_;
    const std::string account_;
    const Purpose purpose_;
    bool is_taken_ = false;
  };
  // One job's at a time, however it ends: who sends its files may be taken over in the midst of it.
  using Busy = std::set<std::string>;
  class Turn {
   public:
    Turn(Staging& staging, Busy& busy, const std::string& job_id) : staging_(staging), busy_(busy), job_id_(job_id) {
      busy_.insert(job_id_);
    }
    ~Turn() {
      busy_.erase(job_id_);
      staging_.changed_.Notify();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Staging& staging_;
    Busy& busy_;
    const std::string job_id_;
  };
  struct Missing {
    int file = 0;  // of the request's files
    Content content;
    std::string source;
    uint64_t offset = 0;
  };

  using Seen = std::map<std::string, Stamp>;  // by SHA-256: files of the cache that need not be read again

  awaitable<void> EndLate();
  awaitable<void> TellOfEndingCredentials();
  awaitable<absl::Status> KeepCredential(std::string job_id, std::string text);
  awaitable<void> RemoveCredential(std::string job_id);
  awaitable<void> Advance(std::string job_id, Seen seen);
  awaitable<void> AdvanceByItself(std::string job_id, Seen seen);
  awaitable<void> AdvanceLater(std::string job_id);
  awaitable<absl::Status> TryAdvance(std::string job_id, const Seen& seen);
  awaitable<absl::StatusOr<std::unique_ptr<StagerLink>>> StartStager(std::string job_id);
  absl::StatusOr<std::vector<StageIn>> PlanOf(const Job& job) const;
  awaitable<absl::StatusOr<std::vector<Missing>>> FindMissing(StagerLink& stager, std::string job_id);
  awaitable<absl::Status> MakeScratch(StagerLink& stager, std::string job_id);
  static awaitable<absl::Status> RemoveTree(StagerLink& stager, std::string path);
  awaitable<absl::Status> TakeAll(UploadCall& call, std::string job_id);
  // `job_id`: ends with its waiting; empty: with the call.
  awaitable<absl::StatusOr<bool>> IsThere(StagerLink& stager, Content content, uint64_t size);
  awaitable<absl::StatusOr<Stamp>> TakeFile(UploadCall& call, StagerLink& stager, const Missing& missing,
                                            std::string job_id);
  awaitable<absl::StatusOr<std::string>> PathIn(std::string job_id, std::string path);
  static awaitable<absl::Status> ShowList(FilesWriter& writer, StagerLink& stager, std::string path);
  static awaitable<absl::Status> ShowFile(FilesWriter& writer, StagerLink& stager, std::string path, uint64_t offset);
  const Job* Find(const std::string& job_id) const;  // one that waits for its files
  // ---- staging_out.cc
  awaitable<void> FinishJob(std::string job_id);
  awaitable<absl::Status> TryFinishJob(std::string job_id, bool is_last);
  int Redirections(const std::string& job_id) const;
  awaitable<void> UntilTold(std::string job_id);
  awaitable<absl::Status> SendOut(StagerLink& stager, std::string job_id, bool is_last);
  awaitable<absl::Status> Gather(StagerLink& stager, std::string job_id, StageOut item, unsigned mode);
  awaitable<void> CleanUp(std::unique_ptr<StagerLink> stager, std::string job_id, std::string rsl);
  awaitable<absl::Status> TryCleanUp(StagerLink& stager, std::string job_id, std::string rsl);
  awaitable<void> RemoveFiles(std::string job_id);

  Loop& loop_;
  Conductor& conductor_;
  const Settings settings_;
  Signal changed_;                   // a slot has become free, or an Advance is over
  struct InUse {
    std::map<std::string, int> of_account;
    int in_all = 0;
  };
  std::map<Purpose, InUse> slots_;
  Busy advancing_;
  Busy giving_credential_;
  Busy finishing_;
  Busy removing_;
  Busy trying_again_;
  NewestCalls takings_;  // of a job's files
};

}  // namespace sekisho::qserver
