// SPDX-License-Identifier: Apache-2.0
#include "client/site/directory.h"

#include <cstdlib>
#include <ctime>

#include <fmt/format.h>

#include "common/identity/trust_store.h"
#include "common/refusal.h"
#include "glue/bundle.h"
#include "glue/ldap.h"

namespace sekisho::client {
namespace {

constexpr char kDefaultPort[] = "2135";
constexpr std::chrono::milliseconds kPatience{3'000};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<std::vector<glue::Offer>> Ask(const DirectoryAddress& address, const std::string& filter) {
  glue::Ldap::Options options;
  options.url = address.url;
  options.starts_tls = address.starts_tls;
  options.timeout = kPatience;
  std::optional<glue::Bundle> trusted;
  if (address.starts_tls || address.url.rfind("ldaps:", 0) == 0) {
    ASSIGN_OR_RETURN(const std::string directory, identity::FindTrustDirectory());
    ASSIGN_OR_RETURN(glue::Bundle bundle, glue::Bundle::Make(directory));
    trusted.emplace(std::move(bundle));
    options.ca_file = trusted->ca_file();
    options.crl_file = trusted->crl_file();
  }
  auto server = glue::Ldap::Open(options);
  absl::Status status = server.status();
  glue::OfferReader reader;
  if (status.ok()) {
    status = (*server)->Search(address.base, glue::Ldap::Scope::kSubtree, filter, glue::OfferAttributes(),
                               [&](const glue::Entry& entry) { reader.Add(entry); });
  }
  if (!status.ok()) {
    return Refuse(status.code(), 0, "the directory does not answer: " + Message(status),
                  "check \"directory\" in sites.json, or GRID_INFO_HOST; sites.json can name sites without it");
  }
  return reader.Take();
}

}  // namespace

std::optional<DirectoryAddress> FindDirectory(const std::optional<DirectoryAddress>& configured) {
  std::optional<DirectoryAddress> address = configured;
  if (const std::string host = Variable("GRID_INFO_HOST"); !host.empty()) {
    const std::string port = Variable("GRID_INFO_PORT");
    address = DirectoryAddress{fmt::format("ldap://{}:{}", host, port.empty() ? kDefaultPort : port)};
  }
  if (const std::string base = Variable("GRID_INFO_BASEDN"); address && !base.empty()) {
    address->base = base;
  }
  return address;
}

absl::StatusOr<std::vector<glue::Offer>> AskDirectory(const DirectoryAddress& address) {
  return Ask(address, glue::kOfferFilter);
}

absl::StatusOr<std::optional<std::string>> LookUpContact(const DirectoryAddress& address, const std::string& site) {
  const std::string filter =
      fmt::format("(&(objectClass=GLUE2ComputingEndpoint)(GLUE2EntityName={}))", glue::EscapeFilterValue(site));
  ASSIGN_OR_RETURN(const auto offers, Ask(address, filter));
  for (const glue::Offer& offer : offers) {
    if (offer.site == site && offer.IsFresh(std::time(nullptr))) {
      return offer.contact;
    }
  }
  return std::nullopt;
}

}  // namespace sekisho::client
