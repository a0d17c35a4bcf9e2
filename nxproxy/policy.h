// SPDX-License-Identifier: Apache-2.0
// Who may do what: docs/protocol/10-nxproxy.md, "What policy decides".  Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "nxproxy/config.pb.h"
#include "nxproxy/network.h"
#include "nxproxy/refusal.h"

namespace sekisho::nxproxy {

// Who a session speaks for.
struct Caller {
  std::string owner;  // subject
  std::string job;    // "" unless it came with a token
  std::string site;   // of the token
  bool is_limited = false;

  // A program over several sites, each of which makes tokens for it; no site's job has such a name.
  bool IsOfAWorld() const { return job.starts_with("world-"); }

  // May it use what `other` bound?  The same job; or the same subject, if that was not bound to a
  // job.
  bool SharesWith(const Caller& other) const {
    return owner == other.owner &&
           (job.empty() || (job == other.job && (site == other.site || IsOfAWorld())));
  }
  friend bool operator==(const Caller&, const Caller&) = default;
};

class Policy {
 public:
  // InvalidArgument naming the key path of what cannot be read.
  static absl::StatusOr<Policy> Make(const Config& config);

  MaybeRefusal Admit(const Caller& caller) const;
  // The site that `signer` makes tokens for, must be `site`.
  MaybeRefusal AcceptIssuer(const std::string& signer, const std::string& site) const;
  // The ports from which a public endpoint is taken; `first` 0: any, `last` 0: just `first`.
  MaybeRefusal PublicPorts(const Caller& caller, uint64_t first, uint64_t last,
                           std::vector<Ports>& out) const;
  // A target that is no endpoint.  `own` are the relay's addresses.
  MaybeRefusal ConnectOut(const Caller& caller, const wire::Address& target,
                          const std::vector<wire::Address>& own) const;
  bool IsAdmin(const Caller& caller) const;
  // Whether who asks from `from`, of `site` ("": not known), reaches `target` by an endpoint only.
  bool IsInside(const wire::Address& target, const wire::Address& from,
                const std::string& site) const;

 private:
  struct PublicBind {
    std::vector<std::string> subjects;
    Ports ports;
  };
  struct Out {
    std::vector<std::string> subjects;
    std::vector<Network> networks;
    Ports ports;
  };
  std::string site_;
  std::vector<Network> inside_;
  std::vector<std::string> identities_;
  std::vector<std::string> admins_;
  std::vector<std::pair<std::string, std::string>> issuers_;  // subject, site
  std::vector<PublicBind> public_;
  std::vector<Out> out_;
  bool refuse_limited_ = false;
};

}  // namespace sekisho::nxproxy
