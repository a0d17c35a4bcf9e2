// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/ways.h"

#include <algorithm>
#include <utility>

#include "nxproxy/client/porter/sock_diag.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kFoundMs = 10'000;
constexpr int64_t kNotFoundMs = 1000;
constexpr size_t kKnownMax = 4096;
constexpr int64_t kOthersEveryMs = 1000;
constexpr std::string_view kInsideRule = "inside";  // nobody listens where nobody else is reached

// The first address of "10.1.0.11:80,[fd00::1]:80@siteA".
wire::Address FirstOf(const std::string& inside) {
  const size_t end = std::min(inside.find_first_of(",@"), inside.size());
  return wire::ParseAddress(std::string_view(inside).substr(0, end)).value_or(wire::Address{});
}

std::string SiteOf(const std::string& inside) {
  const size_t at = inside.find('@');
  return at == std::string::npos ? "" : inside.substr(at + 1);
}

}  // namespace

Way WayOf(const Question& question, const wire::Message& answer) {
  Way way;
  if (question.is_relay && answer.verb == wire::Verb::kError &&
      answer.code == static_cast<uint64_t>(wire::Code::kDenied)) {
    way.kind = Way::Kind::kRefused;
    way.refusal = RefusalOf(answer);
    return way;
  }
  if (answer.verb != wire::Verb::kResolved || answer.address.empty()) {
    way.is_unknown = true;
    if (answer.rule == kInsideRule && !question.is_near) {
      way.kind = Way::Kind::kRefused;
      way.refusal = RefusalOf(answer);
    }
    return way;
  }
  way.target = answer.address;
  way.endpoint = answer.endpoint;
  way.is_ours = !answer.owner.empty() || !answer.job.empty();
  way.is_encrypted = answer.encrypt != 0;
  way.label = answer.label;
  const std::string site = SiteOf(answer.inside);
  const bool is_site_known = !site.empty() && !question.site.empty();
  if (is_site_known && site == question.site) {
    way.inside = FirstOf(answer.inside);
    way.kind = question.is_relay && way.inside.is_set() ? Way::Kind::kInside : Way::Kind::kDirect;
    way.is_neighbour = way.kind == Way::Kind::kDirect;
    return way;
  }
  if (question.is_near && !question.is_relay && !is_site_known) {
    return way;
  }
  way.kind = Way::Kind::kRelay;
  way.site = site;
  return way;
}

Question Ways::QuestionOf(const wire::Address& destination, const Interfaces& interfaces) const {
  const auto relay = wire::ParseAddress(session_.welcome().address);
  Question question;
  question.destination = destination;
  question.site = site_;
  question.is_relay = destination.ip == relay_.ip || (relay && destination.ip == relay->ip);
  question.is_near = interfaces.IsAttached(destination);
  return question;
}

void Ways::Find(const wire::Address& destination, OnWay on_way) {
  const Interfaces& interfaces = Interfaces::Read();
  const Question question = QuestionOf(destination, interfaces);
  // Near is near, unless the other site may have the same addresses; our own address where somebody listens is ours.
  const bool is_ours =
      interfaces.IsOwn(destination) && !question.is_relay && IsListenedTo(destination.port);
  if (is_ours || (question.is_near && !question.is_relay && site_.empty()) || !session_.is_up()) {
    on_way({});
    return;
  }
  const auto known = known_.find(wire::ToText(destination));
  if (known != known_.end() && known->second.until_ms > loop_.now_ms()) {
    on_way(known->second.way);
    return;
  }
  wire::Message resolve;
  resolve.verb = wire::Verb::kResolve;
  resolve.address = wire::ToText(destination);
  resolve.site = site_;
  if (loop_.now_ms() >= others_due_ms_) {
    resolve.others = kOthers;
    others_due_ms_ = loop_.now_ms() + kOthersEveryMs;
  }
  session_.Ask(resolve, [this, question, on_way = std::move(on_way)](const wire::Message& answer) {
    Keep(question, answer);
    on_way(WayOf(question, answer));
  });
}

void Ways::Learn(const wire::Message& resolved) {
  if (const auto destination = wire::ParseAddress(resolved.place)) {
    Keep(QuestionOf(*destination, Interfaces::Read()), resolved);
  }
}

void Ways::Keep(const Question& question, const wire::Message& answer) {
  if (known_.size() >= kKnownMax) {
    known_.clear();
  }
  const bool is_found = answer.verb == wire::Verb::kResolved;
  known_[wire::ToText(question.destination)] = {WayOf(question, answer),
                                                loop_.now_ms() + (is_found ? kFoundMs : kNotFoundMs)};
}

}  // namespace sekisho::nxproxy::client
