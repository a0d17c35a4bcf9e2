// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/wire/error.h"

#include <cerrno>

namespace sekisho::nxproxy::wire {
namespace {

constexpr CodeInfo kCodes[] = {
    {Code::kOk, "ok", 0, "done", ""},
    {Code::kProtocol, "protocol", EPROTO, "that is not the protocol",
     "use a client of the relay's version"},
    {Code::kVersion, "version", EPROTONOSUPPORT, "no common version of the protocol",
     "use a client of the relay's version"},
    {Code::kUnauthenticated, "unauthenticated", EACCES, "no credential that the relay accepts",
     "make a proxy with 'sekisho proxy init', or pass the job's token in NXPROXY_TOKEN_FILE"},
    {Code::kTokenInvalid, "token-invalid", EACCES,
     "the job token is not one that the relay accepts",
     "use the token that the job's own task was given"},
    {Code::kTokenExpired, "token-expired", EACCES, "the job token has expired",
     "a job's token is renewed as long as the job runs: use a later job's, or your own proxy"},
    {Code::kTicketInvalid, "ticket-invalid", EACCES,
     "the ticket belongs to no session of this relay", "dial the control connection again"},
    {Code::kTicketUsed, "ticket-used", EACCES, "the ticket has been used before",
     "make a new ticket for each connection"},
    {Code::kDenied, "denied", EACCES, "the relay's policy forbids it",
     "the rule's name says which line of the relay's policy; ask its administrator"},
    {Code::kQuota, "quota", EDQUOT, "that would be more than your share",
     "close some endpoints or streams, or ask the relay's administrator"},
    {Code::kPortTaken, "port-taken", EADDRINUSE, "the port is another endpoint's",
     "ask for port 0"},
    {Code::kNoPortFree, "no-port-free", EADDRNOTAVAIL, "no port is free in the range",
     "ask for a wider range, or wait"},
    {Code::kNoSuchEndpoint, "no-such-endpoint", ECONNREFUSED, "there is no such endpoint",
     "check the address; its program may have ended"},
    {Code::kNotOwner, "not-owner", EPERM, "the endpoint is another's", "bind one of your own"},
    {Code::kTargetRefused, "target-refused", ECONNREFUSED, "the target refused the connection",
     "check that its program listens"},
    {Code::kTargetUnreachable, "target-unreachable", EHOSTUNREACH, "the target cannot be reached",
     "check the address"},
    {Code::kTargetTimeout, "target-timeout", ETIMEDOUT, "the target did not answer in time",
     "check that it is up and that no firewall drops the packets"},
    {Code::kLoop, "loop", ELOOP, "too many relays in a row",
     "check the relays' configuration for a loop"},
    {Code::kBacklogFull, "backlog-full", ECONNREFUSED, "too many peers wait at the endpoint",
     "try again; the program behind it does not accept fast enough"},
    {Code::kExhausted, "exhausted", ENFILE, "the relay has no descriptors left",
     "try again later; tell its administrator"},
    {Code::kDraining, "draining", ECONNREFUSED, "the relay is stopping",
     "try again in some seconds"},
    {Code::kNoSuchStream, "no-such-stream", ECONNABORTED, "the announced peer has gone", ""},
    {Code::kNobodyHome, "nobody-home", ECONNREFUSED,
     "the endpoint's program did not take the connection",
     "try again; the program may be reconnecting to the relay"},
    {Code::kTooSlow, "too-slow", ETIMEDOUT, "the greeting took too long", "check the network"},
    {Code::kInternal, "internal", EIO, "the relay failed",
     "tell its administrator; its log says more"},
};

}  // namespace

std::span<const CodeInfo> AllCodes() { return kCodes; }

const CodeInfo& Info(Code code) {
  const auto index = static_cast<size_t>(code);
  return index < std::size(kCodes) ? kCodes[index] : kCodes[std::size(kCodes) - 1];
}

std::optional<Code> CodeOfName(std::string_view name) {
  for (const CodeInfo& info : kCodes) {
    if (name == info.name) {
      return info.code;
    }
  }
  return std::nullopt;
}

bool EndsEndpoint(Code code) {
  return code == Code::kNoSuchEndpoint || code == Code::kNotOwner || code == Code::kPortTaken;
}

}  // namespace sekisho::nxproxy::wire
