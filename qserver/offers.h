// SPDX-License-Identifier: Apache-2.0
// Keys that are made for jobs and wait for their users' certificates: docs/protocol/19-delegation.md.  They are in
// memory only: after a restart the client asks again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/identity/delegation.h"
#include "proto/files.pb.h"

namespace sekisho::qserver {

class Offers {
 public:
  // `host`: who says that they are the jobs'.
  explicit Offers(identity::Credential host) : host_(std::move(host)) {}

  // The same until it is answered, or old: who asks often fills no memory, and spoils nobody's answer.
  absl::StatusOr<proto::DelegationOffer> For(const std::string& job_id, identity::Time now);

  // What the job's key and these certificates (DER, the new proxy first) are together.  Nobody has judged them yet.
  absl::StatusOr<identity::Credential> Answer(const std::string& job_id, const std::vector<std::string>& ders,
                                              identity::Time now);
  // The answer was taken: there is none to this key any more.
  void Spend(const std::string& job_id) { standing_.erase(job_id); }

  size_t size() const { return standing_.size(); }

 private:
  void DropOld(identity::Time now);

  struct Standing {
    identity::KeyPtr key;
    proto::DelegationOffer offer;
    identity::Time made;
  };
  const identity::Credential host_;
  std::map<std::string, Standing> standing_;  // by job
};

}  // namespace sekisho::qserver
