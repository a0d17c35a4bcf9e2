// SPDX-License-Identifier: Apache-2.0
// Every error of probing that a user can meet.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "common/status.h"

namespace sekisho::topology::errors {

inline absl::Status CannotListen(std::string_view address, int port, std::string_view why) {
  return absl::UnavailableError(fmt::format("cannot listen on {}:{}: {}", address, port, why));
}

inline absl::Status NoInterface(std::string_view wanted) {
  return absl::NotFoundError(
      wanted.empty()
          ? std::string(
                "no network interface but loopback is up with an IPv4 address: nobody could "
                "measure the way to here")
          : fmt::format("interface \"{}\": there is none that is up with an IPv4 address", wanted));
}

inline absl::Status BadOrder(std::string_view line) {
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" on standard input: expected \"K KEY\" first, then orders such as \"M id "
                  "address port sets "
                  "stop most\" or \"Q\" (sekisho topology infer --launch says such)",
                  line.substr(0, 80)));
}

inline absl::Status BadCopy(std::string_view path, std::string_view why) {
  return absl::UnavailableError(fmt::format("{}: {}", path, why));
}

inline absl::Status NoCopy() {
  return absl::FailedPreconditionError("this prober has no file to copy");
}

inline absl::Status OneCopyOnly() {
  return absl::FailedPreconditionError("this prober has a file to copy already");
}

}  // namespace sekisho::topology::errors
