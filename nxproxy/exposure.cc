// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/exposure.h"

#include <utility>

namespace sekisho::nxproxy {

wire::Message Exposure::Ask(uint32_t id, const std::string& new_secret) {
  asked = id;
  if (secret.empty()) {
    secret = new_secret;
  }
  wire::Message message = bind;
  message.id = id;
  message.endpoint = endpoint;
  message.secret = secret;
  return message;
}

void Exposure::OnBound(const wire::Message& bound) {
  asked = 0;
  is_bound = true;
  endpoint = bound.endpoint;
  secret = bound.secret;
  refused.clear();
}

bool Exposure::OnRefused(wire::Code code, int64_t now_ms, uint64_t chance) {
  asked = 0;
  const bool is_given_up = endpoint != 0 && wire::EndsEndpoint(code);
  bind_at_ms = now_ms + back_off.After(is_given_up, chance).count();
  if (is_given_up) {
    endpoint = 0;
    secret.clear();
  }
  return is_given_up;
}

bool Exposure::OnLost() { return std::exchange(asked, 0) != 0 && endpoint == 0; }

}  // namespace sekisho::nxproxy
