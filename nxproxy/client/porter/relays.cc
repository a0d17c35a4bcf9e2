// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/relays.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kTakenAlongMs = 100;  // a relay that goes takes the connections through it along

}  // namespace

Relays::Relays(Loop& loop, const wire::HostPort& server, const std::string& program,
               int64_t beat_most_ms, Session::Handlers handlers)
    : loop_(loop),
      program_(program),
      beat_most_ms_(beat_most_ms),
      handlers_(std::move(handlers)),
      first_(std::make_unique<Session>(loop, server, nullptr, program, beat_most_ms,
                                       HandlersOf(true))) {}

Session::Handlers Relays::HandlersOf(bool is_first) {
  Session::Handlers out = handlers_;
  out.on_up = [this, is_first](bool is_resumed) { OnUp(is_first, is_resumed); };
  out.on_down = [this, is_first](const std::string& why) { OnDown(is_first, why); };
  return out;
}

// Which of the two it is that is away: where it is looked for depends on that.
void Relays::OnDown(bool is_first, const std::string& why) {
  if (is_first) {
    handlers_.on_down("the relay " + first_->server_text() + " is away: " + why);
    return;
  }
  loop_.Cancel(told_);
  told_ = loop_.After(kTakenAlongMs, [this, why] {
    if (first_->is_up() && !second_->is_up()) {
      handlers_.on_down("the relay " + second_->server_text() + ", behind " +
                        first_->server_text() + ", is away: " + why);
    }
  });
}

void Relays::OnUp(bool is_first, bool is_resumed) {
  const std::string upstream = is_first ? first_->welcome().upstream : "";
  if (upstream.empty()) {
    last_ = is_first ? first_.get() : second_.get();
    handlers_.on_up(is_resumed);
    return;
  }
  const auto server = wire::ParseHostPort(upstream);
  if (!server) {
    handlers_.on_refused(
        {wire::Code::kProtocol, "the relay names '" + upstream + "' as the next", "", ""});
  } else if (second_ == nullptr) {
    second_ = std::make_unique<Session>(loop_, *server, first_.get(), program_, beat_most_ms_,
                                        HandlersOf(false));
    second_->Start();
  }
}

void Relays::Leave() {
  if (second_ != nullptr) {
    second_->Leave();
  }
  first_->Leave();
}

std::string Relays::AddressesText() const {
  const std::string text = wire::ToText(dial_address());
  const auto last = last_ != nullptr ? wire::ParseAddress(last_->welcome().address) : std::nullopt;
  return last && *last != dial_address() ? text + "," + wire::ToText(*last) : text;
}

}  // namespace sekisho::nxproxy::client
