// SPDX-License-Identifier: Apache-2.0
// What sites publish, as people and as machines read it.  Pure.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "glue/offer.h"
#include "glue/where.h"

namespace sekisho::client {

// A queue of a site.
struct PublishedShare {
  const glue::Offer* offer = nullptr;
  const glue::Share* share = nullptr;
};

// Those of which the condition holds; they refer to the offers.
std::vector<PublishedShare> Select(const std::vector<glue::Offer>& offers, const glue::Where& where, int64_t now_s);

// One line a share.
std::string PublishedTable(const std::vector<PublishedShare>& shares, int64_t now_s);

// One object a site, with those of its shares that were selected.
nlohmann::json PublishedJson(const std::vector<PublishedShare>& shares, int64_t now_s);

// All that is known of one site, a line each.
std::string PublishedInFull(const glue::Offer& offer, int64_t now_s);

}  // namespace sekisho::client
