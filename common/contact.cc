// SPDX-License-Identifier: Apache-2.0
#include "common/contact.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <arpa/inet.h>
#include <fmt/format.h>

namespace sekisho {
namespace {

constexpr size_t kContactBytesMax = 4096;

bool IsHostCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
}

bool IsServiceCharacter(char c) {
  return IsHostCharacter(c) || c == '/' || c == '+' || c == '=' || c == '~';
}

// The text with a place in it.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ == text_.size(); }
  bool At(char c) const { return !AtEnd() && text_[at_] == c; }
  void Take() { ++at_; }
  bool TakePrefix(std::string_view prefix) {
    const bool found = text_.substr(at_).starts_with(prefix);
    at_ += found ? prefix.size() : 0;
    return found;
  }
  // Up to the first of `stops`, or the end.
  std::string_view Until(std::string_view stops) {
    const size_t end = std::min(text_.find_first_of(stops, at_), text_.size());
    const std::string_view part = text_.substr(at_, end - at_);
    at_ = end;
    return part;
  }
  std::string_view Rest() {
    const std::string_view rest = text_.substr(at_);
    at_ = text_.size();
    return rest;
  }

  absl::Status Expected(std::string_view what, std::string_view seen) const {
    return absl::InvalidArgumentError(fmt::format("contact, column {}: expected {}, saw {}",
                                                  at_ + 1, what, seen.empty() ? "nothing" : seen));
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

absl::Status ParseHost(Scanner& scanner, Contact& contact) {
  if (scanner.At('[')) {
    scanner.Take();
    contact.host = scanner.Until("]");
    in6_addr address;
    const std::string without_zone = contact.host.substr(0, contact.host.find('%'));
    if (scanner.AtEnd() || inet_pton(AF_INET6, without_zone.c_str(), &address) != 1) {
      return scanner.Expected("an IPv6 address and ]", contact.host);
    }
    scanner.Take();
    if (!scanner.AtEnd() && !scanner.At(':') && !scanner.At('/')) {
      return scanner.Expected("a colon, a slash or the end after ]", scanner.Rest());
    }
    return absl::OkStatus();
  }
  contact.host = scanner.Until(":/");
  if (contact.host.empty()) {
    return absl::InvalidArgumentError(
        "contact, column 1: expected a host name, saw none (GRAM error 96: the gatekeeper contact "
        "is "
        "malformed; write host[:port][/service][:subject])");
  }
  if (!std::all_of(contact.host.begin(), contact.host.end(), IsHostCharacter)) {
    return scanner.Expected("a host name of letters, digits, dots and hyphens before here",
                            contact.host);
  }
  return absl::OkStatus();
}

absl::Status ParsePort(Scanner& scanner, Contact& contact) {
  const std::string_view digits = scanner.Until(":/");
  if (digits.empty()) {
    return absl::OkStatus();
  }
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0 || port > 65535) {
    return scanner.Expected("a port from 1 to 65535 before here", digits);
  }
  contact.port = static_cast<uint16_t>(port);
  return absl::OkStatus();
}

absl::Status ParseServicePart(Scanner& scanner, Contact& contact) {
  const std::string_view part = scanner.Until(":");
  const size_t at = part.find('@');
  const std::string_view service = part.substr(0, at);
  if (service.starts_with('/') ||
      !std::all_of(service.begin(), service.end(), IsServiceCharacter)) {
    return scanner.Expected("a service of letters, digits, dots and hyphens before here", service);
  }
  if (!service.empty()) {
    contact.service = service;
  }
  if (at != std::string_view::npos) {
    contact.account = part.substr(at + 1);
    if (contact.account.empty() ||
        !std::all_of(contact.account.begin(), contact.account.end(), IsHostCharacter)) {
      return scanner.Expected("an account name after @", contact.account);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string Contact::Address() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

absl::StatusOr<Contact> ParseContact(std::string_view text) {
  if (text.size() > kContactBytesMax) {
    return absl::InvalidArgumentError(fmt::format("contact of {} bytes, more than the {} allowed",
                                                  text.size(), kContactBytesMax));
  }
  Contact contact;
  Scanner scanner(text);
  scanner.TakePrefix("https://");
  RETURN_IF_ERROR(ParseHost(scanner, contact));
  if (scanner.At(':')) {
    scanner.Take();
    RETURN_IF_ERROR(ParsePort(scanner, contact));
  }
  if (scanner.At('/')) {
    scanner.Take();
    RETURN_IF_ERROR(ParseServicePart(scanner, contact));
  }
  if (scanner.At(':')) {
    scanner.Take();
    contact.subject = scanner.Rest();
    if (!contact.subject.starts_with('/')) {
      return scanner.Expected("a subject like /O=Grid/CN=host/name before here", contact.subject);
    }
  }
  return contact;
}

std::string ToText(const Contact& contact) {
  std::string text = contact.host.find(':') == std::string::npos
                         ? contact.host
                         : fmt::format("[{}]", contact.host);
  if (contact.port != kGatekeeperPort) {
    text += fmt::format(":{}", contact.port);
  }
  if (contact.service != kDefaultService || !contact.account.empty()) {
    text += "/" + contact.service;
  }
  if (!contact.account.empty()) {
    text += "@" + contact.account;
  }
  if (!contact.subject.empty()) {
    // Without a port or service, two colons: the first of one would be read as the port's.
    const bool needs_port = contact.port == kGatekeeperPort && contact.service == kDefaultService &&
                            contact.account.empty();
    text += (needs_port ? "::" : ":") + contact.subject;
  }
  return text;
}

absl::StatusOr<Service> ParseService(std::string_view service) {
  if (service.starts_with('/')) {
    service.remove_prefix(1);
  }
  constexpr std::string_view kManager = kDefaultService;
  Service parts;
  if (service == kManager) {
    return parts;
  }
  const std::string error = fmt::format(
      "no such service: /{} (expected /jobmanager, /jobmanager-EXECUTOR or "
      "/jobmanager-EXECUTOR-QUEUE)",
      service);
  if (!service.starts_with(kManager) || service[kManager.size()] != '-') {
    return absl::NotFoundError(error);
  }
  service.remove_prefix(kManager.size() + 1);
  const size_t hyphen = service.find('-');
  parts.executor = service.substr(0, hyphen);
  if (hyphen != std::string_view::npos) {
    parts.queue = service.substr(hyphen + 1);
  }
  if (parts.executor.empty() || (hyphen != std::string_view::npos && parts.queue.empty()) ||
      parts.queue.find('/') != std::string::npos || parts.executor.find('/') != std::string::npos) {
    return absl::NotFoundError(error);
  }
  return parts;
}

}  // namespace sekisho
