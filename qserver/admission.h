// SPDX-License-Identifier: Apache-2.0
// May this request become a job, and which?  The queue server judges it by itself, whatever the DMZ
// host that carried it says: docs/protocol/5-queue.md, "Admission".  Pure: the account database and
// the clock are arguments.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/identity/gridmap.h"
#include "common/identity/signed_request.h"
#include "proto/queue.pb.h"
#include "qserver/credential_life.h"
#include "qserver/queue.h"
#include "qserver/stage_plan.h"

namespace sekisho::qserver {

struct Account {
  std::string home;
  unsigned uid = 0;
};
using FindAccount = std::function<absl::StatusOr<Account>(const std::string& name)>;

struct AdmissionRules {
  std::string site;
  std::string subject;  // of this queue server's certificate, as the user's tools know it
  std::set<std::string>
      gatekeepers;  // normalized subjects; empty: any, if the request names the site
  bool accept_limited = false;
  TooShort too_short = TooShort::kWarn;  // a credential for the job that is submitted by it
  std::set<std::string> administrators;  // normalized subjects
  std::chrono::seconds freshness{300};
  bool has_engine = false;         // a batch system: engine.h
  RelaySettings relay;
  StagingRules staging;
  std::set<std::string> projects;  // empty: any
  int64_t wall_time_max_s = 0;
  size_t rsl_bytes_max = 256 << 10;  // of one request
  int jobs_max = 10'000;             // of one subject that wait or run
  uint64_t kept_bytes_max = 256 << 20;  // of one subject's descriptions, also of ended jobs
  std::map<std::string, std::string> host;  // GLOBUS_HOST_...: of the machine that evaluates
};

// A request whose signature, site and mapping are right.
struct Verified {
  proto::RequestBody body;
  identity::Identity identity;
  std::string account;
  std::string job_id;  // of a Submit
};

// Everything but freshness: a repeat of what was accepted in time is answered as it was.
absl::StatusOr<Verified> Verify(const proto::QueueRequest& request, const AdmissionRules& rules,
                                identity::JudgedChains& chains, const identity::Gridmap& gridmap,
                                identity::Time now);

absl::Status CheckFresh(const Verified& verified, const AdmissionRules& rules, identity::Time now);

// A verified Administer: fresh, by an administrator, and not by a limited proxy.
absl::Status CheckAdministrator(const Verified& verified, const AdmissionRules& rules, identity::Time now);

// Whether its signer's credential lasts as long as the job; a warning, or "".
absl::StatusOr<std::string> CheckLife(const Verified& verified, const Admitted& admitted, const AdmissionRules& rules,
                                      identity::Time now);

// A verified Submit: its RSL evaluated and understood.
absl::StatusOr<Admitted> Describe(const Verified& verified, const proto::SignedRequest& request,
                                  const AdmissionRules& rules, const FindAccount& find_account);

// The argument of a verified Signal that redirects the job's output: likewise.
absl::StatusOr<rsl::JobDescription> DescribeUpdate(const Verified& verified, const Job& job, const AdmissionRules& rules,
                                                   const Account& account);

// A verified SubmitMany: the submission at `index` of it, as if it had come alone.
Verified OneOfMany(const Verified& many, int index, const AdmissionRules& rules);

// Whether there is room for one more of the subject's jobs.
absl::Status CheckRoom(const Queue::Usage& usage, const Admitted& admitted,
                       const AdmissionRules& rules);

}  // namespace sekisho::qserver
