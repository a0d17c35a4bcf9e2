// SPDX-License-Identifier: Apache-2.0
// Slurm, by its own commands.  docs/protocol/13-slurm.md.
#pragma once

#include "qserver/engine.h"
#include "qserver/slurm_words.h"

namespace sekisho::qserver {

class Slurm final : public Engine {
 public:
  explicit Slurm(SlurmSettings settings) : settings_(std::move(settings)) {}

  std::string name() const override { return "Slurm"; }
  awaitable<absl::StatusOr<std::string>> Submit(EngineRequest request) override;
  awaitable<absl::Status> Check(EngineRequest request) override;
  awaitable<absl::Status> Cancel(std::string job_id, std::string account) override;
  awaitable<absl::StatusOr<std::map<std::string, EngineState>>> Query() override;

 private:
  const SlurmSettings settings_;
};

}  // namespace sekisho::qserver
