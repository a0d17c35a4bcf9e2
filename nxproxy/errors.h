// SPDX-License-Identifier: Apache-2.0
// Every refusal of the relay that a user can meet: docs/protocol/10-nxproxy.md, "Errors".
#pragma once

#include <string>

#include <fmt/format.h>

#include "nxproxy/refusal.h"

namespace sekisho::nxproxy::errors {

using wire::Code;

inline Refusal NoCredential() {
  return {Code::kUnauthenticated, "neither a certificate nor a job token came", ""};
}
inline Refusal BadChain(const std::string& why) { return {Code::kUnauthenticated, why, ""}; }
inline Refusal NotAdmitted(const std::string& subject) {
  return {Code::kDenied, fmt::format("\"{}\" may not use this relay", subject), "identity"};
}
inline Refusal LimitedProxy(const std::string& subject) {
  return {Code::kDenied, fmt::format("\"{}\" came with a limited proxy", subject), "limited-proxy"};
}
inline Refusal BadToken(const std::string& why) { return {Code::kTokenInvalid, why, ""}; }
inline Refusal TokenExpired(const std::string& why) { return {Code::kTokenExpired, why, ""}; }
inline Refusal TokenIssuer(const std::string& signer, const std::string& site) {
  return {Code::kTokenInvalid,
          fmt::format("\"{}\" makes no job tokens for site {} here", signer, site), "token-site"};
}
inline Refusal OtherIdentity() {
  return {Code::kNotOwner, "the session was opened under another identity", ""};
}
inline Refusal TooManyHops(uint64_t hops, uint64_t limit) {
  return {Code::kLoop, fmt::format("{} relays in a row, and {} is the limit", hops, limit), ""};
}
inline Refusal PublicBind(const std::string& owner) {
  return {Code::kDenied, fmt::format("\"{}\" may not bind public endpoints here", owner),
          "public-bind"};
}
inline Refusal NotEncrypted() {
  return {Code::kDenied, "endpoints here are encrypted end to end, and this one would not be",
          "encrypt"};
}
inline Refusal PortRange(const std::string& asked, const std::string& ranges) {
  return {Code::kDenied, fmt::format("port {} was asked for, yours are {}", asked, ranges),
          "port-range"};
}
inline Refusal PortTaken(int port) {
  return {Code::kPortTaken, fmt::format("port {} is in use", port), ""};
}
inline Refusal PortLost(int port, const std::string& why) {
  return {Code::kPortTaken,
          fmt::format("port {} could not be opened again after the relay's restart: {}", port, why),
          ""};
}
inline Refusal NoPortFree(int first, int last) {
  return {Code::kNoPortFree, fmt::format("no port of {}-{} is free", first, last), ""};
}
inline Refusal Quota(const char* rule, size_t limit, const char* what) {
  return {Code::kQuota, fmt::format("you have {} {}, and that is the limit", limit, what), rule};
}
inline Refusal NoSuchEndpoint(const std::string& address) {
  return {Code::kNoSuchEndpoint, fmt::format("there is no endpoint {}", address), ""};
}
inline Refusal NobodyListens(const std::string& address) {
  return {Code::kNoSuchEndpoint, fmt::format("no program of yours listens at {}", address), "inside"};
}
inline Refusal OtherJob(const std::string& address) {
  return {Code::kDenied, fmt::format("{} belongs to another job", address), "job-scope"};
}
inline Refusal NotAllowed(const std::string& peer) {
  return {Code::kDenied, fmt::format("the endpoint does not take {}", peer), "allow"};
}
inline Refusal NotOwner() {
  return {Code::kNotOwner, "the endpoint is another's, or the secret is wrong", ""};
}
inline Refusal ConnectOut(const std::string& target) {
  return {Code::kDenied, fmt::format("this relay leads nobody to {}", target), "connect-out"};
}
inline Refusal OwnLoopback(const std::string& target) {
  return {Code::kDenied,
          fmt::format("{} is this relay itself, or an address that leads nowhere else", target),
          "own-loopback"};
}
inline Refusal BadTarget(const std::string& target) {
  return {Code::kTargetUnreachable, fmt::format("'{}' is not ADDRESS:PORT", target), ""};
}
inline Refusal BacklogFull(size_t limit) {
  return {Code::kBacklogFull, fmt::format("{} peers wait at the endpoint", limit), ""};
}
inline Refusal NobodyHome() { return {Code::kNobodyHome, "the inside did not come in time", ""}; }
inline Refusal TicketInvalid(const std::string& why) { return {Code::kTicketInvalid, why, ""}; }
inline Refusal TicketUsed() { return {Code::kTicketUsed, "the ticket came a second time", ""}; }
inline Refusal NoSuchStream() { return {Code::kNoSuchStream, "no such peer waits", ""}; }
inline Refusal Draining() { return {Code::kDraining, "the relay is stopping", ""}; }
inline Refusal TooSlow() { return {Code::kTooSlow, "the greeting was not complete in time", ""}; }
inline Refusal Exhausted() { return {Code::kExhausted, "no descriptors are left", ""}; }
inline Refusal Crowded() {
  return {Code::kQuota, "too many connections are greeting", "unfinished"};
}
inline Refusal Protocol(const std::string& why) { return {Code::kProtocol, why, ""}; }
inline Refusal Target(Code code, const std::string& target) {
  return {code, fmt::format("{}: {}", target, wire::Info(code).words), ""};
}

}  // namespace sekisho::nxproxy::errors
