// SPDX-License-Identifier: Apache-2.0
// TLS for a command that lives for one call: ours from the handshake on, plain bytes for gRPC on a local
// socket.
//
// gRPC's own TLS wants certificates and keys as PEM, parses them again, and hands the server's out as PEM
// to be parsed once more.  With OpenSSL 3.0, which builds a chain of decoders for every public key, that
// costs several times what the handshake itself does.  Daemons, whose connections last, use client_tls.h.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "common/loop.h"
#include "common/tls/client_tls.h"

namespace sekisho::tls {

class Link {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  using CredentialSource = std::function<absl::StatusOr<const identity::Credential*>()>;

  // Shakes hands over `fd`, a connected socket and ours from here on.  Unavailable if the connection
  // breaks or `deadline` passes; any other error says why the server was refused, before it has seen our
  // certificate, or is the credential's.  `credential` is asked once, when our first message has gone:
  // reading a proxy takes about as long as the server's answer.  Bytes flow while `loop` runs.
  static absl::StatusOr<std::unique_ptr<Link>> Open(Loop& loop, int fd, const CredentialSource& credential,
                                                    const std::string& trust_directory,
                                                    const ExpectedServer& expected, Deadline deadline,
                                                    const Clock& clock = SystemClock);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const identity::Identity& server() const { return server_; }

  // The plain end, non-blocking: the caller's to close.  Once.
  int TakePlainEnd();

 private:
  struct Pump;
  Link() = default;

  identity::Identity server_;
  std::shared_ptr<Pump> pump_;
  int plain_end_ = -1;
};

}  // namespace sekisho::tls
