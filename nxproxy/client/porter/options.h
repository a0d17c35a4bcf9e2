// SPDX-License-Identifier: Apache-2.0
// The porter's command line.  `sekisho relay` writes it; people need not.
#pragma once

#include <string>
#include <vector>

#include "nxproxy/client/porter/endpoints.h"

namespace sekisho::nxproxy::client {

struct Options {
  std::string verb;  // exec, serve, forward, connect, stats
  std::vector<wire::HostPort> servers;  // each listener is an endpoint at each of them
  BindPlan plan;
  bool is_advertising = false;
  bool takes_loopback = false;
  std::vector<std::string> words;    // what else there was
  std::vector<std::string> command;  // after --
};

// "" or what is wrong.
std::string ParseOptions(const std::vector<std::string>& words, Options& out);

// --server, else $NXPROXY_SERVER, else the first word of /etc/sekisho/nxproxy-server: "HOST:PORT,...".
std::string ServerText(const std::string& given);

// JOB:PORT as the relay knows it, of SITE/ID:PORT or https://HOST:PORT/ID/:PORT; else the text
// itself.
std::string TargetText(const std::string& given);

// $NXPROXY_SITE, else the second word of that file; "": not known, as on a user's machine.
std::string SiteText();

}  // namespace sekisho::nxproxy::client
