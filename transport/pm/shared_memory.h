// SPDX-License-Identifier: Apache-2.0
// The memory of a context, which a program and the daemon's keeper map both: a head, three areas of
// which one holds the state, the rings, the trace.  docs/protocol/9-pm.md, "Two drivers".
#pragma once

#include <atomic>
#include <system_error>

#include "transport/pm/endpoint.h"
#include "transport/pm/hand_over.h"
#include "transport/pm/release_notes.h"
#include "transport/pm/trace_ring.h"

namespace sekisho::pm {

struct SharedHead {
  static constexpr std::uint64_t kMagic = 0x41306d7073656b31;  // changes with the layout

  std::uint64_t magic = kMagic;
  Config config;
  Address own;

  alignas(64) std::atomic<std::uint64_t> word{0};  // see hand_over.h

  alignas(64) std::atomic<std::uint32_t> calls{0};  // grows with what the program does
  std::atomic<std::uint32_t> program_sleeps{0};     // in select: ring it when a message is there
  std::atomic<std::uint32_t> program_waits{0};      // for a message, in whatever way
  std::atomic<std::int64_t> deadline{kNever};       // of the protocol, when the word was given back
  std::atomic<std::int64_t> program_pid{0};

  alignas(64) std::atomic<std::int64_t> keeper_wakes{kNever};  // it looks again then, or when rung
  std::atomic<std::int64_t> stop_is_near{0};                   // sekisho-pmd: see IsNear
  std::atomic<std::uint64_t> take_overs{0}, seizures{0}, rings{0};
  std::atomic<std::uint64_t> near_in{0}, near_out{0};  // datagrams; of the program, now and then

  alignas(64) ReleaseNotes releases;
};

// A stop that does not come holds nobody up for longer.
inline constexpr Nanos kStopIsNear = 50 * kMillisecond;

// Whether the job is about to be stopped, `until` then at the latest: nothing new is begun, and
// keepers attend to what arrives.
constexpr bool IsNear(Nanos until, Nanos now) { return until > now && until - kStopIsNear <= now; }

// Reads the head of memory that we do not trust: limits and size must fit.
std::error_code CheckHead(const SharedHead& head, std::size_t size, Config& config);

// The head alone, for who only says something in it.  Not inherited by children.
class SharedHeadView {
 public:
  SharedHeadView() = default;
  ~SharedHeadView();
  SharedHeadView(const SharedHeadView&) = delete;
  SharedHeadView& operator=(const SharedHeadView&) = delete;

  // `memory` stays the caller's.
  std::error_code Map(int memory);
  SharedHead* get() const { return head_; }  // null: not mapped

 private:
  SharedHead* head_ = nullptr;
};

class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  static std::size_t SizeFor(const Config& config);

  // A sealed memfd, initialised.
  std::error_code Make(const Config& config, const Address& own, Nanos now);
  // `fd` becomes ours.  It must be sealed against shrinking.
  std::error_code Map(int fd);

  int fd() const { return fd_; }
  SharedHead& head() const { return *head_; }
  const Config& config() const { return config_; }  // ours: checked once
  TraceRing& trace() const { return *trace_; }
  // Gives the pages of the trace back: what was in it is gone.
  void ForgetTrace();
  // Rings that nobody uses give their pages back, where there are many.  Only for a process that
  // has this memory for itself: Endpoint::MindRings.
  void MindRings();
  // For who will send and receive, of the state in this area: WarmPages.
  void Warm(std::uint32_t area);
  Endpoint& area(std::uint32_t index) { return areas_[index % kAreas]; }
  // Makes the state of the spare area from that of another.
  void Rebuild(std::uint32_t from, std::uint32_t to, Nanos now);
  // The same with the rings and an area of another memory of the same shape.
  void Restore(SharedMemory& saved, std::uint32_t from, std::uint32_t to, Nanos now);

 private:
  std::error_code MapChecked(std::size_t size);
  void AskForHugePages();
  MutableBytes AreaBytes(std::uint32_t index) const;
  MutableBytes RingBytes() const;
  MutableBytes TraceBytes() const;

  int fd_ = -1;
  MutableBytes mapping_;
  SharedHead* head_ = nullptr;
  TraceRing* trace_ = nullptr;
  Config config_;
  Endpoint areas_[kAreas];
};

using SharedHandOver = HandOver<std::atomic<std::uint64_t>>;

}  // namespace sekisho::pm
