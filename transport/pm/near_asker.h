// SPDX-License-Identifier: Apache-2.0
// Asks the daemon for rings to those peers that seem to be on this host; never waits for it.
// docs/protocol/9-pm.md, "Inside a host".
#pragma once

#include <array>

#include "transport/pm/near_links.h"

namespace sekisho::pm {

class NearAsker {
 public:
  NearAsker() = default;
  ~NearAsker() { Forget(); }
  NearAsker(const NearAsker&) = delete;
  NearAsker& operator=(const NearAsker&) = delete;

  // To be called now and then.  `memory` is the context's: it proves to the daemon who asks.  New
  // rings are asked for only where `may_ask`.
  void Tend(const char* daemon, int memory, const Address& own, const Endpoint& endpoint,
            NearLinks& links, Nanos now, bool may_ask);
  // What is asked for just now is not wanted any more.
  void Forget();

 private:
  struct Try {
    NodeId node = 0;
    std::uint32_t session = 0;
    Nanos last = 0;
    Nanos pause = 0;  // 0: free
  };

  bool MayAsk(NodeId node, std::uint32_t session, Nanos now);
  void Ask(const char* daemon, int memory, const Config& config, NodeId node, Nanos now);
  void TakeAnswer(const Endpoint& endpoint, NearLinks& links, Nanos now);

  int connection_ = -1;  // an answer is to come
  NodeId node_ = 0;
  std::uint32_t session_ = 0;
  Nanos asked_ = 0;
  Nanos next_ = 0;
  NodeId looked_at_ = 0;
  std::array<Try, NearLinks::kMost> tries_{};
};

}  // namespace sekisho::pm
