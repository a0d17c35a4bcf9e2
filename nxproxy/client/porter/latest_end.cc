// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/latest_end.h"

#include <utility>

#include "nxproxy/client/porter/credential.h"

namespace sekisho::nxproxy::client {

LatestEnd::LatestEnd(std::unique_ptr<OwnEnd> first) : stamp_(KeyStamp()) {
  ends_.push_back(std::move(first));
}

const OwnEnd& LatestEnd::Get(bool is_idle) {
  if (is_idle && ends_.size() > 1) {
    ends_.erase(ends_.begin(), ends_.end() - 1);
  }
  const std::string stamp = KeyStamp();
  if (stamp == stamp_) {
    return *ends_.back();
  }
  std::string error;
  if (auto later = OwnEnd::Load(error)) {  // else half written, perhaps: we look again
    stamp_ = stamp;
    ends_.push_back(std::move(later));
  }
  return *ends_.back();
}

}  // namespace sekisho::nxproxy::client
