// SPDX-License-Identifier: Apache-2.0
#include "client/job/unsent_input.h"

#include <algorithm>

namespace sekisho::client {

proto::InputChunk UnsentInput::From(uint64_t offset, size_t most) const {
  const uint64_t at = std::clamp(offset, first_, size());
  proto::InputChunk chunk;
  chunk.set_offset(at);
  chunk.set_data(kept_.substr(at - first_, most));
  chunk.set_end(has_ended_ && at + chunk.data().size() == size());
  return chunk;
}

bool UnsentInput::Take(uint64_t offset) {
  if (offset <= first_ || offset > size()) {
    return false;
  }
  kept_.erase(0, offset - first_);
  first_ = offset;
  return true;
}

}  // namespace sekisho::client
