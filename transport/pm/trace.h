// SPDX-License-Identifier: Apache-2.0
// A running context as sekisho pm trace sees it: its datagrams and the keys to them.
// docs/protocol/9-pm.md, "Trace".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/pm/shared_memory.h"

namespace sekisho::pm {

class TracedContext {
 public:
  // `memory` is a descriptor that becomes ours.
  static std::error_code Open(int memory, std::unique_ptr<TracedContext>& context);
  ~TracedContext();
  TracedContext(const TracedContext&) = delete;
  TracedContext& operator=(const TracedContext&) = delete;

  // Who drives records for another second.
  void Ask(Nanos now);
  bool Next(TracedDatagram& datagram, Nanos now) { return reader_->Next(datagram, now); }
  std::uint64_t lost() const { return reader_->lost(); }
  // The keys that came into use since the last time: lines of a key log.
  std::string NewKeys();

  const Config& config() const { return memory_.config(); }
  const Address& own() const { return memory_.head().own; }

 private:
  TracedContext() = default;

  SharedMemory memory_;
  std::optional<TraceReader> reader_;
  Nanos asked_ = 0;      // until then, by us
  Nanos others_at_ = 0;  // when we saw last that another asks, too
  bool told_job_ = false;
  std::vector<std::uint64_t> told_;  // of each peer the incarnation whose key was told
};

}  // namespace sekisho::pm
