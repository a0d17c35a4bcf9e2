// SPDX-License-Identifier: Apache-2.0
// Between the queue and a batch system: hands jobs over, hears of their pilots, asks about those that have
// none, and takes back what was cancelled.  docs/protocol/13-slurm.md.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "common/loop.h"
#include "proto/nodes.pb.h"
#include "qserver/conductor.h"
#include "qserver/engine.h"
#include "qserver/hand_over_line.h"

namespace sekisho::qserver {

class EngineDriver {
 public:
  struct Times {
    std::chrono::milliseconds ask_soon{500};     // after something new
    std::chrono::milliseconds ask_late{5'000};   // while nothing changes
    std::chrono::milliseconds try_again{2'000};  // to hand over, or take back
    std::chrono::milliseconds cancel_after{15'000};  // pilots are told first
  };
  // `secret`: whoever knows it can speak for any job's pilots.
  EngineDriver(Loop& loop, Conductor& conductor, Engine& engine, std::string secret)
      : EngineDriver(loop, conductor, engine, std::move(secret), Times()) {}
  EngineDriver(Loop& loop, Conductor& conductor, Engine& engine, std::string secret, Times times);
  EngineDriver(const EngineDriver&) = delete;
  EngineDriver& operator=(const EngineDriver&) = delete;

  void Run();  // once, after the conductor's Restore

  // A dry run.
  awaitable<absl::Status> Check(Admitted admitted);

  // ---- What has happened, and is on disk.
  void OnQueued(const Job& job);
  void OnCancelling(const Job& job);
  void OnStagingOut(const Job& job);
  void OnEnded(const Job& job);
  void OnDetached() { news_.Notify(); }
  // The site is drained, or no more: then nothing is handed over.
  void OnDrainChanged();

  // ---- Pilots.  The name under which this one speaks, HOST.JOB.  Unavailable: it may come again.
  absl::StatusOr<std::string> JudgePilot(const proto::AgentMessage::Hello& hello) const;
  // It was attached under that name.
  void OnPilot(const proto::AgentMessage::Hello& hello);

  std::string TokenOf(const std::string& job_id) const;
  bool IsTokenOf(const std::string& job_id, const std::string& token) const;  // from any thread

 private:
  using Clock = std::chrono::steady_clock;
  struct Held {
    Clock::time_point taken;  // by the batch system, as far as this process knows
    std::map<int, proto::Placement> pilots;
  };

  EngineRequest RequestOf(const std::string& job_id, const std::string& account,
                          const std::string& rsl, const proto::Demand& demand) const;
  awaitable<void> HandOver();
  enum class Answer { kTaken, kLater, kNever };  // kNever: it is not to be offered any more
  awaitable<Answer> Offer(std::string job_id);
  awaitable<void> OfferAgain();
  void TellDrained(const std::string& job_id);
  awaitable<void> TakeBack();
  awaitable<void> Ask();
  awaitable<void> CancelLater(std::string job_id);
  bool IsOpen(const Job& job) const;
  bool IsAnyOpen() const;
  bool IsMissing(const Job& job) const;
  void ForgetAtPilots(const Job& job);
  void Judge(const Job& job, const std::map<std::string, EngineState>& states);
  void StartIfWhole(const Job& job, int hosts);

  Loop& loop_;
  Conductor& conductor_;
  Engine& engine_;
  const std::string secret_;
  const Times times_;
  std::map<std::string, Held> held_;  // by job
  HandOverLine line_;
  bool is_offering_again_ = false;  // one HandOver does, and the others wait
  Signal hand_over_;
  std::map<std::string, std::string> to_take_back_;  // job -> account
  Signal take_back_;
  Signal news_;
};

}  // namespace sekisho::qserver
