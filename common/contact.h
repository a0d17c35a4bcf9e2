// SPDX-License-Identifier: Apache-2.0
// Contact strings, [https://]host[:[port]][/service][:subject], in every form of GRAM, and with
// IPv6 literals in brackets: docs/protocol/2-identity.md.  Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace sekisho {

inline constexpr uint16_t kGatekeeperPort = 2119;
inline constexpr char kDefaultService[] = "jobmanager";

struct Contact {
  std::string host;  // name or address, without brackets
  uint16_t port = kGatekeeperPort;
  std::string service = kDefaultService;  // without the leading slash
  std::string account;  // service@account: which of the mapped accounts; empty: the default
  std::string subject;  // expected of the host; empty: by host name

  // "host:port" as dialled, IPv6 in brackets.
  std::string Address() const;

  friend bool operator==(const Contact&, const Contact&) = default;
};

// InvalidArgument "COLUMN: what was expected, what was seen"; an empty host is GRAM's error 96.
absl::StatusOr<Contact> ParseContact(std::string_view text);

// The one text that parses to `contact`, defaults left out.
std::string ToText(const Contact& contact);

// What a service asks for: jobmanager[-EXECUTOR[-QUEUE]].
struct Service {
  std::string executor;  // "agent", "slurm", "fork" ...; empty: the site's default
  std::string queue;     // empty: the executor's default

  friend bool operator==(const Service&, const Service&) = default;
};

// With or without the leading slash.  NotFound if it is no jobmanager's name.
absl::StatusOr<Service> ParseService(std::string_view service);

}  // namespace sekisho
