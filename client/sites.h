// SPDX-License-Identifier: Apache-2.0
// Site names and job names.  A site is a name of sites.json or a contact string; a job is SITE/ID or the
// job contact https://HOST:PORT/ID/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/contact.h"
#include "common/status.h"

namespace sekisho::client {

// Where to go, and what the site is called if that is known.
struct Target {
  std::string site;  // "" if only a contact was given
  Contact contact;
};

struct JobReference {
  Target target;
  std::string id;
};

class Sites {
 public:
  // $SEKISHO_SITES if set; else ~/.config/sekisho/sites.json, then /etc/sekisho/sites.json, the first
  // that exists.  No file: no names, contacts still work.
  static absl::StatusOr<Sites> Load();
  static absl::StatusOr<Sites> Parse(const std::string& text, const std::string& source);

  // SITE, SITE/SERVICE, or a contact in any form.
  absl::StatusOr<Target> Resolve(const std::string& text) const;
  absl::StatusOr<JobReference> ResolveJob(const std::string& text) const;

  std::vector<std::string> Names() const;

 private:
  std::map<std::string, std::string> contacts_;  // by site name
  std::string source_;
};

}  // namespace sekisho::client
