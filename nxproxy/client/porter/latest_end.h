// SPDX-License-Identifier: Apache-2.0
// What we prove to the far ends of encrypted streams, as it was renewed last: the statement about a job's key ends
// with the token beside it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nxproxy/client/porter/own_end.h"

namespace sekisho::nxproxy::client {

class LatestEnd {
 public:
  explicit LatestEnd(std::unique_ptr<OwnEnd> first);

  // For a new stream.  `is_idle`: no handshake is under way, so the earlier ones go.
  const OwnEnd& Get(bool is_idle);
  const OwnEnd& known() const { return *ends_.back(); }

 private:
  std::string stamp_;
  std::vector<std::unique_ptr<OwnEnd>> ends_;  // not empty; the latest is the last
};

}  // namespace sekisho::nxproxy::client
