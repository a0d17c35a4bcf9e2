// SPDX-License-Identifier: Apache-2.0
// sekisho-nxporter: started by `sekisho relay` and by libnxproxy. docs/protocol/11-nxproxy-shim.md.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "nxproxy/client/porter/exec.h"
#include "nxproxy/client/porter/reach.h"

int main(int argc, char** argv) {
  using namespace sekisho::nxproxy::client;
  Options options;
  const std::string error = ParseOptions(std::vector<std::string>(argv + 1, argv + argc), options);
  if (!error.empty()) {
    std::fprintf(stderr, "sekisho: %s\n", error.c_str());
    return kExitUsage;
  }
  const size_t count = options.words.size();
  if (options.verb == "exec" && count == 0) {
    return Exec(options);
  }
  if (options.verb == "serve" && count == 1) {
    return Serve(options, std::atoi(options.words[0].c_str()));
  }
  int code = -1;
  for (const auto& server : options.servers) {
    if (options.verb == "forward" && count == 2) {
      code = Forward(options, server, options.words[0], TargetText(options.words[1]));
    } else if (options.verb == "connect" && count == 1) {
      code = Connect(options, server, TargetText(options.words[0]));
    } else if (options.verb == "stats" && count == 0) {
      const int seen = Stats(options, server);
      code = code == 0 ? 0 : seen;
      continue;  // all of them
    }
    if (code != kExitFailed) {
      break;
    }
  }
  if (code >= 0) {
    return code;
  }
  std::fprintf(
      stderr,
      "usage: sekisho-nxporter exec [--scope job|public] [--port [LOCAL:]PORT] [--advertise] "
      "[--loopback] [--encrypt]\n"
      "                             [--server HOST:PORT] -- COMMAND...\n"
      "       sekisho-nxporter forward LOCALPORT TARGET | connect TARGET | stats | serve PID\n");
  return kExitUsage;
}
