// SPDX-License-Identifier: Apache-2.0
#include "directory/view.h"

#include "common/log.h"

namespace sekisho::directory {

void View::Hear(const proto::SiteState* state, const std::string& why) {
  if (state != nullptr && state->site() == profile_.site) {
    is_losing_ = false;
    timer_.cancel();
    state_ = *state;
    health_ = {true, ""};
    on_change_(*this);
    return;
  }
  const std::string reason =
      state == nullptr ? "the queue server does not tell its state: " + Printable(why)
                       : "the queue server is of site " + Printable(state->site());
  if (is_losing_ || (!health_.is_connected && health_.info == reason)) {
    return;
  }
  is_losing_ = true;
  timer_.expires_after(grace_);
  timer_.async_wait([this, reason](const std::error_code& error) {
    if (!error && is_losing_) {
      is_losing_ = false;
      health_ = {false, reason};
      on_change_(*this);
    }
  });
}

}  // namespace sekisho::directory
