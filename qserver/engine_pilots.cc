// SPDX-License-Identifier: Apache-2.0
// The driver's half about pilots: who they are, and when a job has all of them.
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include "common/job_state.h"
#include "qserver/engine_driver.h"
#include "qserver/errors.h"

namespace sekisho::qserver {
namespace {

constexpr int kHostsMost = 100'000;

bool IsHostName(const std::string& name) {
  return !name.empty() && name.size() <= 128 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") ==
             std::string::npos;
}

}  // namespace

std::string EngineDriver::TokenOf(const std::string& job_id) const {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), secret_.data(), int(secret_.size()),
       reinterpret_cast<const unsigned char*>(job_id.data()), job_id.size(), digest, &size);
  std::string token;
  for (unsigned i = 0; i < size; ++i) {
    token += fmt::format("{:02x}", digest[i]);
  }
  return token;
}

bool EngineDriver::IsTokenOf(const std::string& job_id, const std::string& token) const {
  const std::string right = TokenOf(job_id);
  return token.size() == right.size() && CRYPTO_memcmp(token.data(), right.data(), right.size()) == 0;
}

absl::StatusOr<std::string> EngineDriver::JudgePilot(const proto::AgentMessage::Hello& hello) const {
  const proto::AgentMessage::Pilot& pilot = hello.pilot();
  if (!IsTokenOf(pilot.job_id(), pilot.token())) {
    return errors::BadPilot("its token is not the job's");
  }
  const Job* job = conductor_.queue().Find(pilot.job_id());
  if (job == nullptr || !job->has_engine || IsFinal(job->status.state())) {
    return errors::BadPilot("the job has ended");
  }
  if (job->status.engine_job().empty()) {
    return errors::PilotTooEarly(pilot.job_id());
  }
  if (job->status.engine_job() != pilot.engine_job()) {
    return errors::BadPilot(fmt::format("the job is {} job {}", engine_.name(), job->status.engine_job()));
  }
  if (!IsHostName(hello.node()) || pilot.hosts() < 1 || pilot.hosts() > kHostsMost || pilot.number() < 0 ||
      pilot.number() >= pilot.hosts() || pilot.processes() < 1) {
    return errors::BadPilot("it does not say what it is");
  }
  const std::string name = hello.node() + "." + pilot.job_id();
  if (job->has_processors && !HasNode(job->status, name)) {
    return errors::BadPilot("the job runs on other hosts");
  }
  return name;
}

void EngineDriver::OnPilot(const proto::AgentMessage::Hello& hello) {
  const std::string& job_id = hello.pilot().job_id();
  const Job* job = conductor_.queue().Find(job_id);
  if (job == nullptr || IsFinal(job->status.state())) {
    return;
  }
  proto::Placement& place = held_[job_id].pilots[hello.pilot().number()];
  place.set_node(hello.node());
  place.set_processes(hello.pilot().processes());
  if (job->is_staging_out) {
    ForgetAtPilots(*job);  // it was away when the others were told
  } else if (!job->has_processors) {
    StartIfWhole(*job, hello.pilot().hosts());
  }
}

void EngineDriver::StartIfWhole(const Job& job, int hosts) {
  const std::string job_id = job.status.job_id();
  const Held& held = held_[job_id];
  std::vector<proto::Placement> placement;
  int64_t processes = 0;
  for (const auto& [number, place] : held.pilots) {
    if (conductor_.nodes().count(place.node()) > 0) {
      placement.push_back(place);
      processes += place.processes();
    }
  }
  if (int(placement.size()) != hosts) {
    return;  // the others come
  }
  if (processes < job.demand->processes()) {
    const std::string reason =
        fmt::format("{} gave {} processors, {} were asked for", engine_.name(), processes,
                    job.demand->processes());
    conductor_.Change(
        [&](Queue& queue) { return queue.OnEngineEnded(job_id, reason, Conductor::NowMs()); });
    return;
  }
  conductor_.Change([&](Queue& queue) {
    return queue.OnEngineStart(job_id, engine_.name(), placement, Conductor::NowMs());
  });
}

}  // namespace sekisho::qserver
