// SPDX-License-Identifier: Apache-2.0
// Sites to choose from.
#pragma once

#include "glue/offer.h"

namespace sekisho::glue {

inline constexpr int64_t kTestNow = 1'795'000'000;

inline Offer TestOffer(const std::string& site, int64_t free, int64_t total, int64_t clock) {
  Offer offer;
  offer.site = site;
  offer.contact = site + ":2119";
  offer.health = "ok";
  offer.serving_state = "production";
  offer.created_s = kTestNow - 10;
  offer.validity_s = 120;
  offer.mpi = {"mpich"};
  Environment environment;
  environment.id = "urn:env:" + site;
  environment.name = site + "-nodes";
  environment.platform = "amd64";
  environment.os = "debian12";
  environment.memory_mb = 8192;
  environment.clock_mhz = clock;
  environment.processors = total / 2;
  environment.nodes = 2;
  environment.free_slots = free;
  environment.total_slots = total;
  environment.reached = false;
  environment.reaches_out = site == "siteA";
  offer.environments = {environment};
  Share share;
  share.service = "jobmanager-agent";
  share.serving_state = "production";
  share.free_slots = free;
  share.slots_per_job = total;
  share.wait_s = 30;
  share.requested_slots = 2;
  share.wall_time_max_s = 3600;
  share.environments = {environment.id};
  offer.shares = {share};
  return offer;
}

}  // namespace sekisho::glue
