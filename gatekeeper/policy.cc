// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/policy.h"

#include <algorithm>
#include <optional>

#include "common/config.h"
#include "common/utf8.h"
#include "gatekeeper/errors.h"

namespace sekisho::gatekeeper {
namespace {

constexpr size_t kNameBytesMax = 128;

bool IsName(const std::string& text) {
  return !text.empty() && text.size() <= kNameBytesMax &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c < 128 && (std::isalnum(c) || c == '-' || c == '_' || c == '.');
         });
}

struct Match {
  Config::Service service;
  std::string queue;
};

// The configured service that `name` is, or is a queue of; the longest one.
std::optional<Match> Find(const std::vector<Config::Service>& services, const std::string& name) {
  std::optional<Match> best;
  for (const auto& service : services) {
    if (name == service.name()) {
      return Match{service, ""};
    }
    const bool has_executor = service.name().find('-') != std::string::npos;
    const std::string prefix = service.name() + "-";
    if (has_executor && name.size() > prefix.size() && name.starts_with(prefix) &&
        (!best || service.name().size() > best->service.name().size())) {
      best = Match{service, name.substr(prefix.size())};
    }
  }
  return best;
}

}  // namespace

std::vector<Config::Service> Services(const Config& config) {
  if (config.service_size() > 0) {
    return {config.service().begin(), config.service().end()};
  }
  std::vector<Config::Service> defaults(2);
  defaults[0].set_name("jobmanager");
  defaults[1].set_name("jobmanager-agent");
  return defaults;
}

std::string Administrator(const Config& config) {
  return OrDefault(config.administrator(), "the owner of that file (root of the gatekeeper's host)");
}

absl::StatusOr<Grant> Decide(const Config& config, const Caller& caller, const Asked& asked) {
  Grant grant;
  grant.service = OrDefault(asked.service, "jobmanager");
  const auto services = Services(config);
  const auto match = IsName(grant.service) ? Find(services, grant.service) : std::nullopt;
  if (!match) {
    std::vector<std::string> known;
    for (const auto& service : services) {
      known.push_back(service.name());
    }
    return errors::NoSuchService(ToUtf8(grant.service, kNameBytesMax), known);
  }
  grant.queue = match->queue;

  if (caller.is_limited && !match->service.accept_limited()) {
    return errors::LimitedProxy(caller.subject, grant.service);
  }

  if (caller.accounts.empty()) {
    return errors::Unmapped(caller.subject, config.site(),
                            OrDefault(config.grid_mapfile(), "/etc/grid-security/grid-mapfile"),
                            Administrator(config));
  }
  grant.account = asked.account.empty() ? caller.accounts.front() : asked.account;
  if (std::find(caller.accounts.begin(), caller.accounts.end(), grant.account) ==
      caller.accounts.end()) {
    return errors::OtherAccount(caller.subject, ToUtf8(grant.account, kNameBytesMax),
                                caller.accounts);
  }
  if (!IsName(grant.account) || grant.account.front() == '-' || grant.account.front() == '.') {
    return errors::BadAccount(grant.account, "not a name of an account");
  }
  return grant;
}

}  // namespace sekisho::gatekeeper
