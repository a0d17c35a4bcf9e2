// SPDX-License-Identifier: Apache-2.0
// The key by which the leader of a multi-site job gives orders, and nothing else:
// docs/protocol/15-mpirun.md, "Charters".  Ed25519; made for one world, named by what its user
// signs.  Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"

namespace sekisho::identity {

inline constexpr size_t kLeaderKeyBytes = 32;

struct LeaderKey {
  std::string secret;
  std::string open;  // what charters name

  friend bool operator==(const LeaderKey&, const LeaderKey&) = default;
};

LeaderKey MakeLeaderKey();

std::string SignOrder(std::string_view body, const LeaderKey& key);
bool IsOrderSigned(std::string_view body, std::string_view signature, std::string_view open_key);

}  // namespace sekisho::identity
