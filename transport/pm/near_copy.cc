// SPDX-License-Identifier: Apache-2.0
// Copies from another process of this host.
#include "transport/pm/near_copy.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

namespace sekisho::pm {
namespace {

constexpr std::size_t kMostAtOnce = 256u << 20;  // the kernel takes less than 2 GiB

bool ReadFrom(pid_t process, std::uint64_t address, MutableBytes to) {
  while (!to.empty()) {
    const std::size_t size = std::min(to.size(), kMostAtOnce);
    const iovec here = {to.data(), size};
    const iovec there = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), size};
    const ssize_t got = process_vm_readv(process, &here, 1, &there, 1, 0);
    if (got <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(got));
    address += static_cast<std::uint64_t>(got);
  }
  return true;
}

}  // namespace

bool CopyNear(const NearPlace& from, std::uint64_t secret, MutableBytes to) {
  // Nobody else has a secret in our memory; without this, all of it would be one guess away.
  const auto process = static_cast<pid_t>(from.process);
  if (process <= 0 || process == getpid()) return false;
  std::uint64_t found = 0;
  const MutableBytes room(reinterpret_cast<std::uint8_t*>(&found), sizeof found);
  return ReadFrom(process, from.proof, room) && found == secret &&
         ReadFrom(process, from.address, to);
}

}  // namespace sekisho::pm
