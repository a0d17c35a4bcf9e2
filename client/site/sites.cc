// SPDX-License-Identifier: Apache-2.0
#include "client/site/sites.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/identity/credential.h"
#include "common/job_state.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

constexpr char kHttps[] = "https://";

// May a directory know it?  Contacts with a port or in brackets, and nothing, need no question.
bool IsName(const std::string& text) {
  return !text.empty() && text.find_first_of(":[]@") == std::string::npos;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return Refuse(absl::StatusCode::kNotFound, 0, path + ": cannot open the file of sites",
                  "correct SEKISHO_SITES, or unset it: then ~/.config/sekisho/sites.json or /etc/sekisho/sites.json is read");
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::StatusOr<Sites> LoadFile() {
  if (const char* path = std::getenv("SEKISHO_SITES"); path != nullptr && *path != '\0') {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    return Sites::Parse(text, path);
  }
  for (const std::string& path :
       {identity::HomeDirectory() + "/.config/sekisho/sites.json", std::string("/etc/sekisho/sites.json")}) {
    if (const auto text = ReadFile(path); text.ok()) {
      return Sites::Parse(*text, path);
    }
  }
  return Sites();
}

}  // namespace

absl::StatusOr<Sites> Sites::Load() {
  ASSIGN_OR_RETURN(Sites sites, LoadFile());
  sites.directory_ = FindDirectory(sites.directory_);
  if (sites.directory_) {
    sites.SetLookUp([address = *sites.directory_](const std::string& name) { return LookUpContact(address, name); });
  }
  return sites;
}

absl::StatusOr<Sites> Sites::Parse(const std::string& text, const std::string& source) {
  const auto wrong = [&source](const std::string& what) {
    return Refuse(absl::StatusCode::kInvalidArgument, 0,
                  fmt::format(R"({}: {}; expected {{"sites": {{"NAME": {{"contact": "HOST:PORT"}}}}}})", source, what),
                  "correct it there (docs/operations/cli.md), or name a contact, HOST:PORT, instead of a site");
  };
  const auto json = nlohmann::json::parse(text, nullptr, false, true);
  if (!json.is_object() || !json.contains("sites") || !json["sites"].is_object()) {
    return wrong("not a file of sites");
  }
  Sites sites;
  sites.source_ = source;
  for (const auto& [name, site] : json["sites"].items()) {
    if (name.find_first_of(":/ ") != std::string::npos || name.empty()) {
      return wrong(fmt::format("sites.{}: a name holds no ':', '/' or space", name));
    }
    if (!site.is_object() || !site.contains("contact") || !site["contact"].is_string()) {
      return wrong(fmt::format("sites.{}.contact is missing", name));
    }
    const std::string contact = site["contact"];
    if (const auto parsed = ParseContact(contact); !parsed.ok()) {
      return wrong(fmt::format("sites.{}.contact: {}", name, Message(parsed.status())));
    }
    sites.contacts_[name] = contact;
    if (site.contains("queue_server")) {
      if (!site["queue_server"].is_string() || !std::string(site["queue_server"]).starts_with('/')) {
        return wrong(fmt::format("sites.{}.queue_server: expected a subject, /O=.../CN=HOST", name));
      }
      sites.speakers_[name] = site["queue_server"];
    }
  }
  if (json.contains("directory")) {
    const auto& directory = json["directory"];
    if (!directory.is_object() || !directory.contains("url") || !directory["url"].is_string() ||
        (directory.contains("base") && !directory["base"].is_string())) {
      return wrong(R"(directory: expected {"url": "ldap://HOST:PORT", "base": "o=glue", "tls": true})");
    }
    DirectoryAddress address;
    address.url = directory["url"];
    address.base = directory.value("base", address.base);
    address.starts_tls = directory.contains("tls") && directory["tls"] == true;
    sites.directory_ = address;
  }
  if (json.contains("near")) {
    if (!json["near"].is_string()) {
      return wrong("near: expected a site's name");
    }
    sites.near_ = json["near"];
  }
  return sites;
}

// The directory's word, else the file's.  A subject that the file names is expected of either's host.
absl::StatusOr<std::optional<Contact>> Sites::Find(const std::string& name) const {
  const auto known = contacts_.find(name);
  std::optional<Contact> listed;
  if (known != contacts_.end()) {
    ASSIGN_OR_RETURN(listed, ParseContact(known->second));
  }
  if (!look_up_ || !IsName(name)) {
    return listed;
  }
  const auto published = look_up_(name);
  if (!published.ok()) {
    if (listed || name.find('.') != std::string::npos) {
      return listed;  // the file, or a host's name, will do
    }
    return published.status();
  }
  if (!*published) {
    return listed;
  }
  auto contact = ParseContact(**published);
  if (!contact.ok()) {
    return listed;
  }
  if (listed) {
    contact->subject = listed->subject;
    contact->service = listed->service;
  }
  return std::optional<Contact>(*contact);
}

absl::StatusOr<Target> Sites::Resolve(const std::string& text) const {
  const std::string name = text.substr(0, text.find('/'));
  ASSIGN_OR_RETURN(const std::optional<Contact> found, Find(name));
  if (!found) {
    const auto contact = ParseContact(text);
    if (!contact.ok()) {
      return Refuse(absl::StatusCode::kInvalidArgument, 96,
                    fmt::format("'{}' is no contact: {}", text, Message(contact.status())),
                    "write a site's name, or host[:port][/service][:subject]");
    }
    return Target{"", *contact};
  }
  Target target{name, *found};
  if (name.size() < text.size()) {
    // The service, and account or subject after it, by the contact's own grammar.
    ASSIGN_OR_RETURN(const Contact asked, ParseContact("host" + text.substr(name.size())));
    target.contact.service = asked.service;
    target.contact.account = asked.account;
    if (!asked.subject.empty()) {
      target.contact.subject = asked.subject;
    }
  }
  return target;
}

absl::StatusOr<JobReference> Sites::ResolveJob(const std::string& text) const {
  std::string rest = text;
  if (rest.rfind(kHttps, 0) == 0) {
    rest = rest.substr(sizeof(kHttps) - 1);
  }
  while (!rest.empty() && rest.back() == '/') {
    rest.pop_back();
  }
  const auto slash = rest.rfind('/');
  if (slash == std::string::npos || !IsJobId(rest.substr(slash + 1))) {
    return Refuse(absl::StatusCode::kInvalidArgument, 80, fmt::format("'{}' names no job", text),
                  "write it as submit printed it: SITE/ID, ID 13 letters and digits");
  }
  JobReference job;
  ASSIGN_OR_RETURN(job.target, Resolve(rest.substr(0, slash)));
  job.id = rest.substr(slash + 1);
  return job;
}

std::vector<std::string> Sites::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, contact] : contacts_) {
    names.push_back(name);
  }
  return names;
}

}  // namespace sekisho::client
