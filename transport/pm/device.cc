// SPDX-License-Identifier: Apache-2.0
// An endpoint on a real UDP socket.
#include "transport/pm/device.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "transport/pm/warm_pages.h"

namespace sekisho::pm {

std::error_code Device::Open(const Config& config, const Address& own, const Options& options,
                             Cipher* cipher, std::unique_ptr<Device>& out) {
  const std::size_t needed = Endpoint::MemoryNeeded(config);
  if (needed == 0) return Error::kBadConfig;
  std::unique_ptr<Device> device(new (std::nothrow) Device);
  if (!device) return Error::kNoMemory;
  if (const auto error = device->wire_.Open(own, options)) return error;
  void* memory = mmap(nullptr, needed, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return {errno, std::generic_category()};
  device->mapping_ = {static_cast<std::uint8_t*>(memory), needed};
  if (const auto error = device->endpoint_.Init(config, device->mapping_, cipher, Now())) {
    return error;
  }
  const std::size_t area = Endpoint::AreaNeeded(config);
  WarmPages(config, device->mapping_.first(area), device->mapping_.subspan(area));
  out = std::move(device);
  return {};
}

Device::~Device() {
  if (!mapping_.empty()) munmap(mapping_.data(), mapping_.size());
}

void Device::Flush() { wire_.Flush(endpoint_, {}, Now()); }

bool Device::Progress() {
  bool any = false;
  for (int i = 0; i < 4 && wire_.Pull() > 0; ++i) {
    const bool full = wire_.full();  // there may be more than was taken
    wire_.Feed(endpoint_, Now());
    any = true;
    if (!full) break;
  }
  const Nanos now = Now();
  if (endpoint_.NextDeadline() <= now) endpoint_.OnTimer(now);
  wire_.Flush(endpoint_, {}, now);
  return any;
}

void Device::Wait(Nanos until) {
  const Nanos wake = std::min(until, endpoint_.NextDeadline());
  pollfd waiting = {fd(), POLLIN, 0};
  const Nanos left = wake == kNever ? kNever : std::max<Nanos>(wake - Now(), 0);
  const timespec timeout = {left / kSecond, left % kSecond};
  (void)ppoll(&waiting, 1, wake == kNever ? nullptr : &timeout, nullptr);
  Progress();
}

}  // namespace sekisho::pm
