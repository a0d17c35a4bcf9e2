// SPDX-License-Identifier: Apache-2.0
// How the site looks from the directory: its last state, and whether somebody still tells it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "common/loop.h"
#include "directory/entries.h"

namespace sekisho::directory {

class View {
 public:
  // `on_change` is called on the loop.  A stream that comes back within `grace` was never gone.
  View(Loop& loop, Profile profile, std::chrono::seconds grace, std::function<void(const View&)> on_change)
      : profile_(std::move(profile)), grace_(grace), on_change_(std::move(on_change)), timer_(loop) {}

  void Hear(const proto::SiteState* state, const std::string& why);

  bool is_connected() const { return health_.is_connected; }
  std::vector<glue::Entry> Entries(const std::string& base) const {
    return MakeEntries(profile_, state_, health_, base);
  }

 private:
  const Profile profile_;
  const std::chrono::seconds grace_;
  const std::function<void(const View&)> on_change_;
  asio::steady_timer timer_;
  bool is_losing_ = false;
  proto::SiteState state_;
  Health health_;
};

}  // namespace sekisho::directory
