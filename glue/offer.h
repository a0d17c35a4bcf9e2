// SPDX-License-Identifier: Apache-2.0
// What a site offers, read from the GLUE entries that stand for it; anybody's entries, so every value is
// foreign text.  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "glue/entry.h"

namespace sekisho::glue {

// Nodes that are alike.
struct Environment {
  std::string id, name;
  std::string platform, os;  // "amd64"; OSName, else OSFamily
  std::optional<int64_t> memory_mb, clock_mhz, processors;  // of one node
  std::optional<int64_t> nodes, nodes_used, nodes_down;
  std::optional<int64_t> free_slots, total_slots;
  std::optional<bool> reached, reaches_out;  // ConnectivityIn, ConnectivityOut
  std::vector<std::string> tags;

  bool operator==(const Environment&) const = default;
};

// A queue.
struct Share {
  std::string service;  // of the contact
  std::string queue;    // empty: for jobs that name none
  std::string serving_state;
  std::optional<int64_t> free_slots, used_slots, requested_slots, slots_per_job;
  std::optional<int64_t> running, waiting;
  std::optional<int64_t> wall_time_max_s, wait_s;
  std::vector<std::string> environments;  // ids

  bool operator==(const Share&) const = default;
};

// The network to another site, as this one publishes it.
struct Link {
  std::string site;
  std::optional<double> rtt_ms, bandwidth_mbps;

  bool operator==(const Link&) const = default;
};

struct Offer {
  std::string site;     // of the entries' place: nobody can call himself another
  std::string contact;  // HOST:PORT
  std::string health, health_info, serving_state, version;
  int64_t created_s = 0;             // since 1970; 0: not said
  std::optional<int64_t> validity_s;
  bool has_policy = false;
  std::vector<std::string> access;
  std::vector<std::string> mpi;
  std::vector<std::string> other;    // Protocol=..., Network=...
  std::vector<Link> links;
  std::vector<Share> shares;
  std::vector<Environment> environments;

  const Environment* Find(const std::string& id) const;
  // Of the share, the environments that are known.
  std::vector<const Environment*> Of(const Share& share) const;
  // What is said is still true: it was said less than its validity ago.
  bool IsFresh(int64_t now_s) const { return !validity_s || created_s + *validity_s >= now_s; }

  bool operator==(const Offer&) const = default;
};

// One of each site whose endpoint is among the entries and takes RSL, by name.  Entries of other kinds, or
// without what they need, are passed over.
std::vector<Offer> ReadOffers(const std::vector<Entry>& entries);

// The same, entry by entry.
class OfferReader {
 public:
  void Add(const Entry& entry);
  std::vector<Offer> Take();

 private:
  std::map<std::string, Offer> offers_;  // by site
};

// The filter that finds what ReadOffers looks at, and the attributes that it reads: half of what there is.
extern const char kOfferFilter[];
const std::vector<std::string>& OfferAttributes();

// "2026-11-22T06:00:00Z"; nothing if it is no such time.
std::optional<int64_t> ParseTime(const std::string& text);

}  // namespace sekisho::glue
