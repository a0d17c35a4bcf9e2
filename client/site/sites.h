// SPDX-License-Identifier: Apache-2.0
// Site names and job names.  A site is a name that the directory or sites.json knows, or a contact string; a
// job is SITE/ID or the job contact https://HOST:PORT/ID/.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/site/directory.h"
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
  // that exists.  No file: no names, contacts still work.  If there is a directory, names are looked up there
  // first.
  static absl::StatusOr<Sites> Load();
  static absl::StatusOr<Sites> Parse(const std::string& text, const std::string& source);

  // SITE, SITE/SERVICE, or a contact in any form.
  absl::StatusOr<Target> Resolve(const std::string& text) const;
  absl::StatusOr<JobReference> ResolveJob(const std::string& text) const;

  std::vector<std::string> Names() const;  // of sites.json

  // The subject of each site's queue server, where sites.json says it: whom to believe about its jobs' keys.
  const std::map<std::string, std::string>& speakers() const { return speakers_; }

  const std::optional<DirectoryAddress>& directory() const { return directory_; }
  const std::string& near() const { return near_; }  // the site that this machine is at, or close to; "": not said

  // The contact that the directory gives a name; nothing: none.
  using LookUp = std::function<absl::StatusOr<std::optional<std::string>>(const std::string& name)>;
  void SetLookUp(LookUp look_up) { look_up_ = std::move(look_up); }

 private:
  absl::StatusOr<std::optional<Contact>> Find(const std::string& name) const;

  std::map<std::string, std::string> contacts_;  // by site name
  std::map<std::string, std::string> speakers_;  // likewise
  std::string source_;
  std::optional<DirectoryAddress> directory_;
  std::string near_;
  LookUp look_up_;
};

}  // namespace sekisho::client
