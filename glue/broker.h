// SPDX-License-Identifier: Apache-2.0
// Which sites could run a job, and which of them should: docs/protocol/16-directory.md, "Choosing a site".
// Every site that is refused says by which attribute, every other by which terms it is ranked.  Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "glue/offer.h"
#include "glue/where.h"

namespace sekisho::glue {

// What a job asks for.
struct Demand {
  struct Condition {
    std::string attribute;  // resource, arch, os, memory, clock or tags; others are left to the site
    std::string op;         // = != < <= > >=
    std::vector<std::string> values;
  };
  int64_t processes = 1;
  std::string queue;
  bool needs_mpi = false;
  std::string mpi;                          // which; empty: any
  std::optional<int64_t> wall_time_s;
  std::optional<int64_t> memory_mb;         // of one process
  std::vector<Condition> conditions;
  std::string subject;                      // who asks; empty: not said
};

struct Candidate {
  struct Term {
    std::string name;
    double value = 0;
    std::string fact;  // what it was made of
  };
  const Offer* offer = nullptr;
  const Share* share = nullptr;
  std::vector<Term> terms;

  double Score() const;
};

struct Rejection {
  std::string site, service;
  std::string attribute, wanted, published;
};

struct Choice {
  std::vector<Candidate> candidates;  // best first; they refer to the offers
  std::vector<Rejection> rejections;  // the first reason of each share
};

// Round-trip time to a site in milliseconds, if it is known.
using Distance = std::function<std::optional<double>(const Offer&)>;

// From the site `near`, by what it or the other publishes; none if `near` is empty.
Distance DistanceFrom(const std::string& near, const std::vector<Offer>& offers);

Choice Choose(const std::vector<Offer>& offers, const Demand& demand, const Where& where, int64_t now_s,
              const Distance& distance = {});

// As --why prints it, a line for each site and term.
std::string Explain(const Choice& choice);

// "*" stands for any text.
bool MatchesPattern(std::string_view pattern, std::string_view text);

}  // namespace sekisho::glue
