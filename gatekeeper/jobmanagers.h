// SPDX-License-Identifier: Apache-2.0
// The accounts' jobmanagers: one process each, started when first needed, restarted when it dies.
// docs/operations/gatekeeper.md, "Jobmanagers".
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/channel.h>

#include "common/identity/credential.h"
#include "common/loop.h"
#include "common/status.h"
#include "gatekeeper/launch.h"
#include "proto/handover.pb.h"

namespace sekisho::gatekeeper {

class JobManagers {
 public:
  struct Options {
    std::string program;
    std::string config;
    std::string state_directory;
    std::chrono::milliseconds start_timeout{10'000};
    // Each is asked whether it is there, and ended after four without an answer.
    std::chrono::milliseconds beat{4'000};
    identity::Credential service;  // of which each gets a proxy
    std::chrono::seconds credential_life = std::chrono::hours(4);
    proto::Handover handover;  // all but credential and token
  };

  JobManagers(Loop& loop, Options options);
  ~JobManagers();

  // A channel to the account's jobmanager, which serves calls.
  awaitable<absl::StatusOr<std::shared_ptr<grpc::Channel>>> Get(std::string account);

  // The secret that the account's jobmanager expects with each call.
  std::string TokenOf(const std::string& account) const;

  // Starts those that were leading programs over several sites when they ended: nobody may ever
  // call them.
  void StartLeading();

  // Ends all of them; returns when they have ended.
  awaitable<void> Stop();

 private:
  struct Manager;

  absl::Status NotReady(const std::string& account) const;
  awaitable<void> Keep(std::shared_ptr<Manager> manager);
  // One process, from its start to its end; how long it was there.  Zero: it was never ready.
  awaitable<absl::StatusOr<std::chrono::steady_clock::duration>> KeepOne(
      std::shared_ptr<Manager> manager);
  awaitable<absl::Status> Start(std::shared_ptr<Manager> manager);
  absl::StatusOr<proto::Handover> MakeHandover(const Manager& manager) const;
  awaitable<absl::Status> HandOver(std::shared_ptr<Manager> manager, proto::Handover handover);
  awaitable<absl::Status> SendHandover(std::shared_ptr<Manager> manager, proto::Handover handover);
  awaitable<void> Attend(std::shared_ptr<Manager> manager);
  awaitable<void> Hear(std::shared_ptr<Manager> manager);
  static awaitable<bool> Ask(Manager& manager);
  awaitable<std::string> End(std::shared_ptr<Manager> manager, bool is_wanted);

  Loop& loop_;
  const Options options_;
  bool is_stopping_ = false;
  std::map<std::string, std::shared_ptr<Manager>> managers_;
};

// Failed starts in a row, after one more process that lived for so long (0: was never ready).  One
// that ended because it was told to is no failure.
int FailuresAfter(int failures, bool is_clean, std::chrono::steady_clock::duration lived);

// Accounts whose jobmanager has left the file `leads` in its directory, below this one.
std::vector<std::string> LeadingAccounts(const std::string& state_directory);

// Time before the next start after `failures` in a row: 100 ms, doubled, at most 30 s.
std::chrono::milliseconds BackOff(int failures);

}  // namespace sekisho::gatekeeper
