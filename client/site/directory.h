// SPDX-License-Identifier: Apache-2.0
// The directory that sites publish themselves in, seen by a user: docs/operations/cli.md, "The directory".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "glue/offer.h"

namespace sekisho::client {

struct DirectoryAddress {
  std::string url;            // ldap://HOST:PORT or ldaps://HOST:PORT
  std::string base = "o=glue";
  bool starts_tls = false;

  bool operator==(const DirectoryAddress&) const = default;
};

// MDS' habit: GRID_INFO_HOST, GRID_INFO_PORT (2135), GRID_INFO_BASEDN.  What is set there counts before what
// `configured` (sites.json) says; nothing: there is no directory.
std::optional<DirectoryAddress> FindDirectory(const std::optional<DirectoryAddress>& configured);

// All sites' offers.
absl::StatusOr<std::vector<glue::Offer>> AskDirectory(const DirectoryAddress& address);

// Of the site of this name, only where to find it.  Nothing: it is not published, or nobody renews it any more.
absl::StatusOr<std::optional<std::string>> LookUpContact(const DirectoryAddress& address, const std::string& site);

}  // namespace sekisho::client
