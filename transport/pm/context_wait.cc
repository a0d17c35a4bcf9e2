// SPDX-License-Identifier: Apache-2.0
// How a program waits: it spins for as long as that has paid of late, lets others have the
// processor, then sleeps.
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>

#include "transport/pm/context.h"

namespace sekisho::pm {
namespace {

constexpr Nanos kTimeOutAhead = 200 * kMicrosecond;
constexpr Nanos kNotWorthSleeping = 200 * kMicrosecond;

}  // namespace

bool Context::Wait(Nanos until, Condition condition) {
  set_waits(true);
  const bool any = WaitUntil(until, condition);
  set_waits(false);
  return any;
}

void Context::Yield(Nanos now) {
  if (!yields_.MayYield(now)) return;
  if (lock_ != nullptr) lock_->unlock();
  sched_yield();
  const Nanos after = Wire::Now();
  if (lock_ != nullptr) lock_->lock();
  yields_.Note(now, after);
  if (yields_.gave_away()) processor_.NoteGivenAway();
}

bool Context::WaitUntil(Nanos until, Condition condition) {
  struct Ways {
    bool Holds() const { return condition.holds(condition.of); }
    Nanos Look(bool spins) {
      if (context.lock_ != nullptr) context.lock_->LetOthersIn();
      // What woke us is in the socket, whatever came through memory of late.
      context.Progress(spins);
      return context.progressed_;
    }
    bool IsInVain() const { return context.wire_.socket_is_empty(); }
    bool HasDatagram() const {
      pollfd socket = {context.wire_.fd(), POLLIN, 0};
      return poll(&socket, 1, 0) > 0;
    }
    bool IsStopped() { return context.IsStopped(); }
    void Yield(Nanos now) { context.Yield(now); }
    void GiveAway() { sched_yield(); }
    void Sleep() { context.Poll(until, condition); }

    Context& context;
    const Nanos until;
    const Condition condition;
  };
  Ways ways = {*this, until, condition};
  return WaitLoop(ways, waiting_, spins_, yields_, Wire::Now(), until);
}

void Context::Sleep(Nanos until) {
  Poll(until, {HasMessageOf, this});
  Progress();
}

// Its timer is as good as a bell.
void Context::NoteChange(bool holds) {
  if (!polls_) return;
  const Nanos now = Wire::Now();
  socket_sleep_.NoteOthers(now);
  if (awaits_) return wire_.EndAwait();
  timer_.Set(holds ? now : NextDeadline(), now);
}

bool Context::MaySleepInSocket(Nanos until, Nanos deadline, Nanos now) const {
  return socket_sleep_.May(now, until) && wire_.one_by_one() && deadline - now >= kTimeOutAhead;
}

void Context::SleepInSocket(Nanos now) {
  polls_ = awaits_ = true;
  if (lock_ != nullptr) lock_->unlock();
  const Wire::Pulled awaited = wire_.Await();
  if (lock_ != nullptr) lock_->lock();
  polls_ = awaits_ = false;
  wire_.Keep(awaited);
  const Nanos after = Wire::Now();
  socket_sleep_.Note(wire_.has_kept(), after - now);
  // Who shares a processor would have been late in poll, too.
  const bool counts = !wire_.has_kept() || !yields_.gave_away();
  if (counts && view().NextDeadline() <= after) socket_sleep_.NoteLate(after);
}

// What would be due while we sleep leaves now: to be woken for it costs more.
void Context::PrepareToSleep() {
  const Nanos now = Wire::Now();
  const Nanos soon = now + kNotWorthSleeping;
  const bool has_work = HasNotes() || held_back_ > 0 || view().NextDeadline() <= soon;
  if (IsStopped() || !has_work) return;
  Endpoint& endpoint = Take();
  Settle(endpoint);
  endpoint.SendBefore(soon, now);
  Flush(endpoint, now);
  (void)Give();
}

void Context::SleepInPoll(bool alone, Nanos until, Nanos deadline, Nanos now) {
  const Nanos wake = std::min(until, deadline);
  // What is so far ahead is a time-out, which only seldom comes to pass.
  timer_.Set(wake, now, deadline < until && deadline - now >= kTimeOutAhead);
  std::array<pollfd, 3> waiting = {pollfd{alone ? wire_.fd() : -1, POLLIN, 0},
                                   pollfd{timer_.fd(), POLLIN, 0},
                                   pollfd{program_bell_, POLLIN, 0}};
  polls_ = true;
  if (lock_ != nullptr) lock_->unlock();
  (void)poll(waiting.data(), program_bell_ >= 0 ? 3 : 2, wake <= now ? 0 : -1);
  if (lock_ != nullptr) lock_->lock();
  polls_ = false;
  const Nanos after = Wire::Now();
  socket_sleep_.Note(waiting[0].revents != 0, after - now);
  if (waiting[1].revents != 0) {
    // Or another thread's call rang with it.
    timer_.Quiet(after, std::min(until, NextDeadline()) <= after || HasMessage());
  }
  if (waiting[2].revents != 0) Quiet();
}

void Context::Poll(Nanos until, Condition condition) {
  if (!condition.holds(condition.of)) PrepareToSleep();
  set_sleeping(true);
  // What is there now was written by one who saw us poll; nothing more comes this way.
  if (!near_.HasAny() && !condition.holds(condition.of)) {
    // Of a stopped job only the keeper wakes us; it rings when the job goes on.
    const bool alone = !IsStopped() || !has_daemon();
    if (!alone) RingForWave();
    const Nanos now = Wire::Now();  // it may have taken long to see that
    const Nanos deadline = alone ? NextDeadline() : now + 100 * kMillisecond;
    if (alone && MaySleepInSocket(until, deadline, now)) {
      SleepInSocket(now);
    } else {
      SleepInPoll(alone, until, deadline, now);
    }
    if (IsRefused()) NoteWoken(Wire::Now());
  }
  set_sleeping(false);
}

}  // namespace sekisho::pm
