// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/relays.h"

namespace sekisho::nxproxy::client {

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
  return out;
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
