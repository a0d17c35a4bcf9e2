// SPDX-License-Identifier: Apache-2.0
// What measurements over PM and over TCP have in common.
#include "transport/pm/bench_ends.h"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <vector>

namespace sekisho::pm {

End::End(const Traffic& traffic) : traffic_(traffic) {
  void* board =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (board == MAP_FAILED) Die("mmap");
  board_ = new (board) Board;
}

End::~End() { munmap(board_, sizeof(Board)); }

void End::Fork() {
  server_ = std::make_unique<BenchProcess>(traffic_.server_core, [this] { Serve(); });
  Pin(0);
}

void End::NoteDelay(const void* message) {
  Nanos stamp;
  memcpy(&stamp, message, sizeof stamp);
  const std::uint32_t at = board_->delay_count.fetch_add(1);
  if (at < Board::kDelays) {
    board_->delays[at] = static_cast<float>(Wire::Now() - stamp) / kMicrosecond;
  }
}

// Who is late for one message sends the next ones when they were due: their wait counts.  Who
// cannot keep up at all is not waited for.
void End::SendPaced(Nanos end) {
  const Nanos begin = Wire::Now();
  const Nanos limit = end + (end - begin);
  for (Nanos due = begin; due < end && Wire::Now() < limit; due += traffic_.period) {
    while (Wire::Now() < due) Progress();
    SendStamped(due);
  }
}

void End::TakeDelays(Measured& measured) {
  const Nanos limit = Wire::Now() + kSecond;
  std::uint32_t count;
  do {  // what was sent has arrived when nothing more comes
    count = board_->delay_count.load();
    for (const Nanos later = Wire::Now() + 20 * kMillisecond; Wire::Now() < later;) Progress();
  } while (board_->delay_count.load() != count && Wire::Now() < limit);
  const auto begin = board_->delays.begin();
  std::vector<float> delays;
  delays.assign(begin, begin + std::min(count, Board::kDelays));
  if (delays.empty()) return;
  std::sort(delays.begin(), delays.end());
  const auto at = [&](double part) {
    return delays[static_cast<std::size_t>(part * static_cast<double>(delays.size() - 1))];
  };
  measured.p99 = at(0.99);
  measured.p999 = at(0.999);
  measured.most = delays.back();
}

Measured End::Run(Nanos time) {
  server_->Go();
  Begin();
  const std::uint64_t arrived = board_->arrived.load();
  const double server = server_->processor_seconds();
  const double own = ProcessorSeconds();
  const Nanos begin = Wire::Now();
  std::uint64_t count = 0;
  board_->delay_count.store(0);
  if (traffic_.period > 0) SendPaced(begin + time);
  // The clock is not asked for every small message: it takes as long as to send one of PM's.  TCP
  // may take seconds for sixteen times many large ones where some are lost.
  const std::uint64_t look = traffic_.round_trip || traffic_.size > 1024 ? 1 : 16;
  while (traffic_.period == 0 && (count % look != 0 || Wire::Now() - begin < time)) {
    traffic_.round_trip ? RoundTrip() : SendSome();
    ++count;
  }
  const double seconds = static_cast<double>(Wire::Now() - begin) / kSecond;
  const auto bytes = static_cast<double>(board_->arrived.load() - arrived);
  const double spent = server_->processor_seconds() - server + ProcessorSeconds() - own;
  Measured measured;
  if (traffic_.round_trip) {
    measured.value = seconds * 1e6 / static_cast<double>(count);
  } else if (traffic_.period == 0) {
    measured.value = bytes / seconds;
    measured.processor_seconds = bytes > 0 ? spent * (1 << 30) / bytes : 0;
  }
  Finish(measured);
  if (traffic_.period > 0) TakeDelays(measured);
  server_->Stop();
  return measured;
}

}  // namespace sekisho::pm
