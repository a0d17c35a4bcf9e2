// SPDX-License-Identifier: Apache-2.0
// sekisho proxy init|info|destroy: makes, shows and removes RFC 3820 proxies, interchangeably with
// grid-proxy-init, grid-proxy-info and grid-proxy-destroy: docs/protocol/2-identity.md.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "common/identity/credential.h"

namespace CLI {
class App;
}

namespace sekisho::client {

// Exit codes: 0; 1 no (valid) proxy, or it could not be made; 64 usage.
void AddProxyVerb(CLI::App& app, int& exit_code);

struct ProxyStreams {
  std::ostream& out;
  std::ostream& err;
};

struct ProxyInit {
  std::string certificate;  // empty: the standard places
  std::string key;
  std::string out;
  std::string trust_directory;
  std::string valid = "12:00";
  int hours = 0;  // if given, instead of `valid`
  int bits = 0;
  bool is_limited = false;
  bool is_independent = false;
  std::optional<long> path_length;
  bool is_verified = false;
  bool is_quiet = false;
};
int InitProxy(const ProxyInit& options, const identity::AskPassphrase& ask, identity::Time now,
              ProxyStreams streams);

struct ProxyInfo {
  std::string file;
  std::vector<std::string> fields;  // print only these, one a line, in this order
  bool is_json = false;
  bool exists = false;  // print nothing: exit code 0 if there is a proxy valid for `valid`
  std::string valid = "0:0";
  int bits = 0;
};
int InfoProxy(const ProxyInfo& options, identity::Time now, ProxyStreams streams);

struct ProxyDestroy {
  std::vector<std::string> files;  // none: the default proxy
  bool is_dry_run = false;
};
int DestroyProxy(const ProxyDestroy& options, ProxyStreams streams);

// "H:M" or "H"; InvalidArgument for anything else.
absl::StatusOr<std::chrono::seconds> ParseHoursMinutes(const std::string& text);

}  // namespace sekisho::client
