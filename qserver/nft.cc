// SPDX-License-Identifier: Apache-2.0
#include "qserver/nft.h"

#include <fmt/format.h>

#include "common/config.h"

namespace sekisho::qserver {
namespace {

bool IsIpv6(const std::string& address) { return address.find(':') != std::string::npos; }

bool IsAddress(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF.:/") == std::string::npos;
}

}  // namespace

absl::StatusOr<std::string> FirewallRules(const Config& config) {
  const std::string listen = OrDefault(config.listen(), "0.0.0.0:7512");
  const size_t colon = listen.rfind(':');
  const std::string port = listen.substr(colon + 1);
  std::string host = listen.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  const std::string inside = OrDefault(config.firewall().qserver_address(), host.c_str());
  if (config.firewall().dmz_address().empty() || inside == "0.0.0.0" || inside == "::") {
    return absl::FailedPreconditionError(
        "firewall: expected \"dmz_address\" (the hosts that run jobmanagers) and, as \"listen\" "
        "names no "
        "address, \"qserver_address\"");
  }
  if (!IsAddress(inside)) {
    return absl::InvalidArgumentError(
        fmt::format("firewall.qserver_address: expected an address, saw \"{}\"", inside));
  }

  std::string rules;
  for (const std::string& dmz : config.firewall().dmz_address()) {
    if (!IsAddress(dmz) || IsIpv6(dmz) != IsIpv6(inside)) {
      return absl::InvalidArgumentError(fmt::format(
          "firewall.dmz_address: expected addresses of the same family as {}, saw \"{}\"", inside,
          dmz));
    }
    const char* family = IsIpv6(dmz) ? "ip6" : "ip";
    rules += fmt::format(
        "    {0} saddr {1} {0} daddr {2} tcp dport {3} ct state new counter accept comment \"the "
        "pinhole: "
        "jobmanager to queue server\"\n",
        family, dmz, inside, port);
  }
  return fmt::format(
      "# The firewall of site {0}, made by sekisho-qserver --print-nft.  Load it on the router "
      "between the\n"
      "# site and the world with `nft -f FILE`.  It drops everything inbound but the one pinhole; "
      "answers to\n"
      "# what the inside has dialled come back.  Rules of your own go into chains of their own.\n"
      "table inet sekisho {{\n"
      "  chain forward {{\n"
      "    type filter hook forward priority filter; policy drop;\n"
      "    ct state established,related accept\n"
      "{1}"
      "    counter comment \"dropped\"\n"
      "  }}\n"
      "}}\n",
      config.site(), rules);
}

}  // namespace sekisho::qserver
