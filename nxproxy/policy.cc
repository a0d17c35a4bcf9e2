// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/policy.h"

#include <algorithm>

#include "common/identity/signing_policy.h"
#include "nxproxy/errors.h"

namespace sekisho::nxproxy {
namespace {

bool MatchesAny(const std::vector<std::string>& patterns, const std::string& subject) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return identity::MatchesPattern(pattern, subject);
  });
}

std::vector<std::string> Strings(const google::protobuf::RepeatedPtrField<std::string>& field) {
  return {field.begin(), field.end()};
}

absl::Status Bad(const std::string& key, const std::string& expected, const std::string& seen) {
  return absl::InvalidArgumentError(
      fmt::format("policy.{}: expected {}, got '{}'", key, expected, seen));
}

std::string Text(const Ports& ports) {
  return ports.first == ports.last ? fmt::format("{}", ports.first)
                                   : fmt::format("{}-{}", ports.first, ports.last);
}

}  // namespace

absl::StatusOr<Policy> Policy::Make(const Config& config) {
  const Config::Policy& given = config.policy();
  Policy policy;
  policy.site_ = config.site();
  for (const std::string& text : given.inside()) {
    const auto network = Network::Parse(text);
    if (!network) {
      return Bad("inside", "a network", text);
    }
    policy.inside_.push_back(*network);
  }
  policy.identities_ = Strings(given.identity());
  policy.admins_ = Strings(given.admin());
  policy.refuse_limited_ = given.refuse_limited();
  for (const auto& issuer : given.token_issuer()) {
    policy.issuers_.emplace_back(issuer.subject(), issuer.site());
  }
  for (int i = 0; i < given.public_bind_size(); ++i) {
    const auto& row = given.public_bind(i);
    const auto ports = ParsePorts(row.ports().empty() ? "20000-29999" : row.ports());
    if (!ports) {
      return Bad(fmt::format("public_bind[{}].ports", i), "a port or a range", row.ports());
    }
    policy.public_.push_back({Strings(row.subject()), *ports});
  }
  for (int i = 0; i < given.connect_out_size(); ++i) {
    const auto& row = given.connect_out(i);
    const auto ports = ParsePorts(row.ports().empty() ? "1-65535" : row.ports());
    if (!ports) {
      return Bad(fmt::format("connect_out[{}].ports", i), "a port or a range", row.ports());
    }
    Out out{Strings(row.subject()), {}, *ports};
    for (const std::string& text : row.network()) {
      const auto network = Network::Parse(text);
      if (!network) {
        return Bad(fmt::format("connect_out[{}].network", i), "a network", text);
      }
      out.networks.push_back(*network);
    }
    policy.out_.push_back(std::move(out));
  }
  return policy;
}

MaybeRefusal Policy::Admit(const Caller& caller) const {
  if (!identities_.empty() && !MatchesAny(identities_, caller.owner)) {
    return errors::NotAdmitted(caller.owner);
  }
  if (refuse_limited_ && caller.is_limited) {
    return errors::LimitedProxy(caller.owner);
  }
  return std::nullopt;
}

MaybeRefusal Policy::AcceptIssuer(const std::string& signer, const std::string& site) const {
  for (const auto& [subject, for_site] : issuers_) {
    if (subject == signer && for_site == site) {
      return std::nullopt;
    }
  }
  return errors::TokenIssuer(signer, site);
}

MaybeRefusal Policy::PublicPorts(const Caller& caller, uint64_t first, uint64_t last,
                                 std::vector<Ports>& out) const {
  std::string ranges;
  for (const PublicBind& row : public_) {
    if (!MatchesAny(row.subjects, caller.owner)) {
      continue;
    }
    ranges += (ranges.empty() ? "" : ", ") + Text(row.ports);
    const uint64_t low = first == 0 ? row.ports.first : std::max<uint64_t>(first, row.ports.first);
    const uint64_t high =
        first == 0 ? row.ports.last : std::min<uint64_t>(last == 0 ? first : last, row.ports.last);
    if (low <= high) {
      out.push_back({static_cast<uint16_t>(low), static_cast<uint16_t>(high)});
    }
  }
  if (ranges.empty()) {
    return errors::PublicBind(caller.owner);
  }
  if (out.empty()) {
    return errors::PortRange(
        last == 0 ? fmt::format("{}", first) : fmt::format("{}-{}", first, last), ranges);
  }
  return std::nullopt;
}

MaybeRefusal Policy::ConnectOut(const Caller& caller, const wire::Address& target,
                                const std::vector<wire::Address>& own) const {
  const bool is_own = std::any_of(own.begin(), own.end(),
                                  [&](const wire::Address& one) { return one.ip == target.ip; });
  if (is_own || IsSpecial(target)) {
    return errors::OwnLoopback(wire::ToText(target));
  }
  for (const Out& row : out_) {
    if (MatchesAny(row.subjects, caller.owner) && row.ports.Contains(target.port) &&
        Contains(row.networks, target)) {
      return std::nullopt;
    }
  }
  return errors::ConnectOut(wire::ToText(target));
}

bool Policy::IsAdmin(const Caller& caller) const {
  return caller.job.empty() && MatchesAny(admins_, caller.owner);
}

bool Policy::IsInside(const wire::Address& target, const wire::Address& from,
                      const std::string& site) const {
  const bool is_stranger = site.empty() ? !Contains(inside_, from) : site != site_;
  return is_stranger && Contains(inside_, target);
}

}  // namespace sekisho::nxproxy
