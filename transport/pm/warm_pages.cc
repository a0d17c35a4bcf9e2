// SPDX-License-Identifier: Apache-2.0
// Pages that the first messages would wait for.
#include "transport/pm/warm_pages.h"

#include <sys/mman.h>

#include <algorithm>

namespace sekisho::pm {
namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr std::size_t kPeers = 96 * 1024;  // bytes at the beginning of an area: what peers have

// Looking alone would do, page by page; some hypervisors map what the kernel made no sooner than
// somebody looks at it.
void Warm(MutableBytes bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) & ~(kPage - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
  for (std::uintptr_t page = begin; page < end; page += kPage) {
    (void)*reinterpret_cast<const volatile std::uint8_t*>(page);
  }
}

}  // namespace

void WarmPages(const Config& config, MutableBytes area, MutableBytes rings) {
  if (!HasFewStreams(config)) return;
  Warm(area.first(std::min(area.size(), kPeers)));
  const std::size_t streams = std::size_t{config.nodes} * config.channels;
  for (const std::size_t ring : {config.send_ring, config.receive_ring}) {
    for (std::size_t i = 0; i < streams; ++i) Warm(rings.subspan(i * ring, 1));
    rings = rings.subspan(streams * ring);
  }
}

}  // namespace sekisho::pm
