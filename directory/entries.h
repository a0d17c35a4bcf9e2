// SPDX-License-Identifier: Apache-2.0
// What of a site is published: its state as GLUE 2.0 entries.  docs/protocol/16-directory.md.  Pure.
#pragma once

#include <string>
#include <vector>

#include "glue/entry.h"
#include "proto/site_state.pb.h"

namespace sekisho::directory {

// What the administrator says of the site; the rest is seen.
struct Profile {
  std::string site;
  std::string contact;      // HOST:PORT of the gatekeeper
  std::string description;  // of the domain
  std::vector<std::string> www;
  std::string quality = "production";
  std::vector<std::string> access;     // rules of the access policy; none: no policy is published
  bool nodes_reach_out = false;        // ConnectivityOut
  bool nodes_are_reached = false;      // ConnectivityIn
  std::vector<std::string> protocols;  // between sites: "relay a-dmz:7514", ...
  struct Link {
    std::string site;
    double rtt_ms = 0, bandwidth_mbps = 0;  // 0: not known
  };
  std::vector<Link> links;  // to other sites
};

// How the site looks from here.
struct Health {
  bool is_connected = false;  // the queue server tells its state
  std::string info;           // why not, or what is odd
};

// Below `base` (its entry is there already), parents first.  Entries that stand for the inside are made only
// while somebody tells how it is: what nobody renews ages out.  None has CreationTime or Validity: differ.h.
std::vector<glue::Entry> MakeEntries(const Profile& profile, const proto::SiteState& state, const Health& health,
                                     const std::string& base);

// The root of all that is made.
std::string SiteDn(const std::string& site, const std::string& base);

}  // namespace sekisho::directory
