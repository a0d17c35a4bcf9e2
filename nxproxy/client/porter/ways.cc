// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/ways.h"

#include <utility>

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kFoundMs = 10'000;
constexpr int64_t kNotFoundMs = 1000;
constexpr size_t kKnownMax = 4096;

// The first address of "10.1.0.11:80,[fd00::1]:80".
wire::Address FirstOf(const std::string& list) {
  return wire::ParseAddress(std::string_view(list).substr(0, list.find(',')))
      .value_or(wire::Address{});
}

}  // namespace

Way WayOf(const wire::Address& destination, const wire::Message& answer, const wire::Message& us,
          bool is_relay) {
  Way way;
  if (is_relay && answer.verb == wire::Verb::kError &&
      answer.code == static_cast<uint64_t>(wire::Code::kDenied)) {
    way.kind = Way::Kind::kRefused;
    way.refusal = RefusalOf(answer);
    return way;
  }
  if (answer.verb != wire::Verb::kResolved || answer.address.empty()) {
    return way;
  }
  const wire::Address inside = FirstOf(answer.inside);
  const bool is_same_site =
      !us.job.empty() && !answer.job.empty() && !us.site.empty() && us.site == answer.site;
  if (is_same_site && inside.is_set()) {
    way.kind = inside == destination ? Way::Kind::kDirect : Way::Kind::kInside;
    way.inside = inside;
    return way;
  }
  way.kind = Way::Kind::kRelay;
  way.target = answer.address;
  way.is_ours = !answer.owner.empty() || !answer.job.empty();
  return way;
}

void Ways::Find(const wire::Address& destination, OnWay on_way) {
  const Interfaces interfaces = Interfaces::Read();
  const auto relay = wire::ParseAddress(session_.welcome().address);
  const bool is_relay = destination.ip == relay_.ip || (relay && destination.ip == relay->ip);
  if (interfaces.IsOwn(destination) || (interfaces.IsAttached(destination) && !is_relay)) {
    on_way({});
    return;
  }
  const std::string name = wire::ToText(destination);
  const auto known = known_.find(name);
  if (known != known_.end() && known->second.until_ms > loop_.now_ms()) {
    on_way(known->second.way);
    return;
  }
  if (!session_.is_up()) {
    on_way({});
    return;
  }
  wire::Message resolve;
  resolve.verb = wire::Verb::kResolve;
  resolve.address = name;
  session_.Ask(resolve, [this, destination, name, is_relay,
                         on_way = std::move(on_way)](const wire::Message& answer) {
    const Way way = WayOf(destination, answer, session_.welcome(), is_relay);
    if (known_.size() >= kKnownMax) {
      known_.clear();
    }
    const bool is_found = answer.verb == wire::Verb::kResolved;
    known_[name] = {way, loop_.now_ms() + (is_found ? kFoundMs : kNotFoundMs)};
    on_way(way);
  });
}

}  // namespace sekisho::nxproxy::client
