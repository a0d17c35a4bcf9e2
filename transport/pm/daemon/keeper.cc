// SPDX-License-Identifier: Apache-2.0
// One process of sekisho-pmd for one context.
#include "transport/pm/daemon/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>

#include "transport/pm/daemon/process_state.h"

namespace sekisho::pm {
namespace {

constexpr Nanos kLookAgain = kMillisecond;  // while the program drives
// For one that waits: it is stopped, or will take what comes as soon as it gets the processor,
// which we should only take away from it.
constexpr Nanos kPatience = 4 * kMillisecond;
constexpr Nanos kStarved = 20 * kMillisecond;  // if it does not get the processor
// Before, it is woken too often to be woken with it.
constexpr Nanos kSoundSleep = 50 * kMillisecond;
constexpr Nanos kSettles = 500 * kMillisecond;    // a flushed job
constexpr Nanos kWordRetry = 200 * kMicrosecond;  // while the program holds the word
constexpr Nanos kLongestLinger = 60 * kSecond;    // of a dead program's messages
constexpr Nanos kAdoptionRetry = 200 * kMillisecond;
constexpr Nanos kTurn = 500 * kMicrosecond;  // of a processor; others ask for 1.4 ms and more

// A loop over spoiled lists must not keep a processor for ever: a second of it in one turn ends it.
volatile sig_atomic_t turns = 0, turns_seen = -1;

void OnProcessorTime(int) {
  if (turns % 2 == 1 && turns == turns_seen) _exit(kKeeperSpoiled);
  turns_seen = turns;
}

void Leave() { _exit(kKeeperSpoiled); }

void WatchTurns() {
  signal(SIGVTALRM, OnProcessorTime);
  const itimerval every = {{1, 0}, {1, 0}};
  setitimer(ITIMER_VIRTUAL, &every, nullptr);
}

// What sched_setattr(2) takes; glibc before 2.41 has no header for it.
struct SchedulerAttributes {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;  // nanoseconds
};

// A keeper works for microseconds, beside programs that compute: who asks for less at a time has
// his turn earlier (since Linux 6.12; before, nothing changes).
void AskForShortTurns() {
  SchedulerAttributes own{};
  if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) != 0 || own.policy != SCHED_OTHER) return;
  own.runtime = kTurn;
  (void)syscall(SYS_sched_setattr, 0, &own, 0);
}

// One keeper for a context: waits until another that still lives is gone.
void LockMemory(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  while (fcntl(fd, F_SETLKW, &lock) != 0 && errno == EINTR) {
  }
}

void Ring(int bell) {
  const std::uint64_t one = 1;
  (void)!write(bell, &one, sizeof one);
}

}  // namespace

int Keeper::Run() {
  SetSpoiledHandler(Leave);
  if (memory_.Map(setup_.fds.memory) || wire_.Adopt(setup_.fds.socket)) return kKeeperSpoiled;
  wire_.SetTrace(memory_.trace(), Side::kKeeper);
  LockMemory(setup_.fds.memory);
  WatchTurns();
  AskForShortTurns();
  dead_ = setup_.pid_fd < 0 && !setup_.parked;
  dead_since_ = Wire::Now();
  calls_ = memory_.head().calls.load();
  while (!closed_) {
    Look();
    if (closed_) break;
    Sleep();
  }
  RefuseAskers();
  return kKeeperDone;
}

bool Keeper::ProgramIsDead() const { return setup_.pid_fd < 0 || IsReadable(setup_.pid_fd); }

bool Keeper::Seize(const OwnerWord& from, bool stopped, OwnerWord& mine) {
  auto word = hand_over();
  if (!word.Claim(from, stopped, mine)) return false;
  predecessor_ = false;
  std::uint32_t area;
  for (;;) {
    const bool alone = word.IsAlone(mine) || ProgramIsDead();
    const ProcessState before = ReadProcessState(setup_.program);
    area = word.SpareArea(mine);
    const Endpoint& torn = memory_.area(mine.area % kAreas);
    memory_.Rebuild(mine.area % kAreas, area, Wire::Now());
    // Whoever was left behind acts on the notes before it stores anything, unless the job is
    // stopped there, and what an empty ring gets next lies at its beginning: there for both of us.
    holds_notes_ = torn.paused();
    if (!holds_notes_) ApplyNotes(memory_.area(area));
    // If a program that was left behind ran meanwhile, what we made may be of two moments.
    if (alone || (before.stopped && ReadProcessState(setup_.program) == before)) break;
    usleep(20);
  }
  word.Move(mine, area);
  memory_.head().seizures.fetch_add(1);
  return true;
}

void Keeper::ApplyNotes(Endpoint& endpoint) {
  const ReleaseNotes& notes = memory_.head().releases;
  notes.Apply(endpoint, notes.count() - ReleaseNotes::kNotes);
}

bool Keeper::Acquire(OwnerWord& mine) {
  auto word = hand_over();
  if (word.TryTake(mine)) {
    predecessor_ = false;
    return true;
  }
  const OwnerWord from = word.seen();
  if (from.owner == Side::kNone) return false;  // just now; try again
  if (from.owner == Side::kKeeper) {
    if (!predecessor_) Leave();  // nobody else may say that
    return Seize(from, false, mine);
  }
  if (ProgramIsDead()) return Seize(from, false, mine);
  return ReadProcessState(setup_.program).stopped && Seize(from, true, mine);
}

bool Keeper::AllDrained(Endpoint& endpoint) {
  for (NodeId node = 0; node < memory_.config().nodes; ++node) {
    if (endpoint.peer_state(node) != PeerState::kGone && !endpoint.Drained(node)) return false;
  }
  return true;
}

// A dead program's context ends when all that it sent has arrived; a stopped job is not over.
void Keeper::CloseIfDone(Endpoint& endpoint, Nanos now) {
  if (!dead_) return;
  if (endpoint.paused()) dead_since_ = now;
  if (endpoint.paused() || (!AllDrained(endpoint) && now < dead_since_ + kLongestLinger)) return;
  for (NodeId node = 0; node < memory_.config().nodes; ++node) (void)endpoint.Close(node, now);
  closed_ = true;
}

// Takes what arrived, does what is due, sends what may leave.  False: the program is at it.
bool Keeper::Pump() {
  OwnerWord mine;
  turns = turns + 1;
  if (!Acquire(mine)) {
    turns = turns + 1;
    return false;
  }
  SharedHead& head = memory_.head();
  Endpoint& endpoint = memory_.area(mine.area);
  const Fence fence = {&head.word, mine.bits()};
  // A program that was left behind may go on there at any time, until it takes the word again.
  const bool left_behind = mine.zombie != 0 && !dead_;
  holds_notes_ = holds_notes_ && left_behind;
  endpoint.KeepSessions(left_behind);
  if (!endpoint.paused() && !holds_notes_) ApplyNotes(endpoint);
  wire_.ExpectMany();
  for (int i = 0; i < 8 && wire_.Pull() > 0; ++i) {
    const bool full = wire_.full();
    wire_.Feed(endpoint, Wire::Now());
    if (!full) break;
  }
  endpoint.AcknowledgeAtOnce();  // the program is elsewhere: it has no answer to put that into
  const Nanos now = Wire::Now();
  if (dead_) {
    endpoint.DropParts();
    for (NodeId node = 0; node < memory_.config().nodes; ++node) endpoint.Hurry(node, now);
  }
  if (endpoint.NextDeadline() <= now) endpoint.OnTimer(now);
  endpoint.NoteProgram(dead_ || head.program_waits.load() != 0);
  if (asker_ >= 0 || takes_back_) endpoint.AskGang(asker_ >= 0 && asks_stop_, now);
  takes_back_ = false;
  if (asker_ >= 0 && fence.holds()) AnswerAsker();  // to tell all the others takes long
  wire_.Flush(endpoint, fence, now);
  CloseIfDone(endpoint, now);
  if (closed_) wire_.Flush(endpoint, fence, now);
  const bool stopped = endpoint.paused();
  const bool settled = stopped && HasStoppedAsJoined(endpoint.gang());  // which its program awaits
  const bool wakes = stopped ? settled && !was_settled_ : was_stopped_ || endpoint.HasMessage();
  was_stopped_ = stopped;
  was_settled_ = settled;
  head.deadline.store(endpoint.NextDeadline());
  head.take_overs.fetch_add(1, std::memory_order_relaxed);
  pause_ = 0;
  (void)hand_over().GiveBack(mine);
  if (wakes && head.program_sleeps.load() != 0) Ring(setup_.fds.program_bell);
  turns = turns + 1;
  return true;
}

// Who asked for the stop may have been answered before this node heard that the job is settled.
bool Keeper::AwaitSettled() {
  const Nanos limit = Wire::Now() + kSettles;
  turns = turns + 1;
  while (Phase() == GangPhase::kFlushed && Wire::Now() < limit) {
    if (!Pump()) {
      usleep(kWordRetry / kMicrosecond);
      continue;
    }
    pollfd socket = {wire_.fd(), POLLIN, 0};
    (void)poll(&socket, 1, 1);
  }
  turns = turns + 1;
  return IsSettled();
}

Nanos Keeper::Due() {
  const Nanos deadline = memory_.head().deadline.load();
  const bool sleeps = !dead_ && memory_.head().program_sleeps.load() != 0 && !IsStopped();
  return sleeps && deadline != kNever ? deadline + kPatience : deadline;
}

// A program that sleeps is woken for whatever we would be woken for.
bool Keeper::IsUpToIt(Nanos now) {
  const Nanos since = std::min(unread_since_, memory_.head().deadline.load());
  if (since > now) return now - active_at_ < kSoundSleep;
  const Nanos waited = now - since;
  return waited < kPatience || (waited < kStarved && !ReadProcessState(setup_.program).stopped);
}

// Longer, the longer nothing has to be done: to look takes a processor away from somebody.
void Keeper::Pause(Nanos now, Nanos least) {
  pause_ = std::clamp(2 * pause_, least, kPatience);
  wake_ = now + pause_;
}

// Whether the program had a processor since this was asked last, at the look before.
bool Keeper::HasRun(Nanos now) {
  const Nanos used = ProcessorTime(setup_.program);
  const bool has = used - used_ > (now - used_at_) / 4;
  used_ = used;
  used_at_ = now;
  return has;
}

// A program that neither calls nor sleeps computes, or waits for a processor: then what we do costs
// it more time.
bool Keeper::IsStarved(Nanos now) {
  return !HasRun(now) && now - active_at_ < kStarved && IsRunnable(setup_.program);
}

// Who drives?  The program as long as it calls; else we.
void Keeper::Look() {
  SharedHead& head = memory_.head();
  const Nanos now = Wire::Now();
  const std::uint32_t calls = head.calls.load();
  const bool active = !dead_ && calls != calls_;
  calls_ = calls;
  attended_ = active;
  // Every node must do its part of a stop at once, also if its program computes.
  const bool stopped = IsStopped();
  Nanos stop = head.stop_is_near.load();
  // It has come, or it does not.
  if (stop != 0 && (stopped || !IsNear(stop, now))) {
    (void)head.stop_is_near.compare_exchange_strong(stop, 0);
  }
  was_stopped_ = was_stopped_ || stopped;
  const bool attends = !stopped && IsNear(stop, now);
  if (active && asker_ < 0 && !takes_back_ && !attends && !IsStopped()) {
    unread_since_ = kNever;
    active_at_ = now;
    (void)HasRun(now);
    watching_ = false;
    Pause(now, head.program_waits.load() != 0 ? kPatience : kLookAgain);
    return;
  }
  if (!has_asked_) readable_ = IsReadable(wire_.fd());
  has_asked_ = false;
  unread_since_ = readable_ ? std::min(unread_since_, now) : kNever;
  const bool must = dead_ || asker_ >= 0 || takes_back_ || predecessor_ || (attends && readable_);
  if (!must && !attends && head.program_sleeps.load() != 0 && !IsStopped() && IsUpToIt(now)) {
    watching_ = false;
    wake_ = now + kPatience;
    return;
  }
  if (!must && !attends && (readable_ || Due() <= now) && !IsStopped() && IsStarved(now)) {
    watching_ = false;
    Pause(now, kLookAgain);
    return;
  }
  watching_ = true;
  if ((must || readable_ || Due() <= now) && !Pump()) {
    watching_ = false;
    wake_ = now + kWordRetry;
    return;
  }
  // A job that is let go may be over at once; one that is over cannot be stopped.
  if (asker_ >= 0 && !(closed_ && asks_stop_)) AnswerAsker();
  wake_ = Due();
  if (dead_ || asker_ >= 0) wake_ = std::min(wake_, now + 10 * kMillisecond);
  if (takes_back_) wake_ = now;
  if (attends) wake_ = std::min(wake_, stop);
}

void Keeper::Sleep() {
  SharedHead& head = memory_.head();
  if (setup_.control < 0) {
    if (Wire::Now() >= retry_adoption_ && AskToBeAdopted()) _exit(kKeeperDone);
    wake_ = std::min(wake_, retry_adoption_);
  }
  head.keeper_wakes.store(wake_);
  if (watching_ && Due() < wake_) return;  // armed just now: the program did not see us asleep
  enum { kBell, kSocket, kControl, kProgram, kConnection, kCount };
  std::array<pollfd, kCount> fds;
  fds[kBell] = {setup_.fds.keeper_bell, POLLIN, 0};
  fds[kSocket] = {watching_ ? wire_.fd() : -1, POLLIN, 0};
  fds[kControl] = {setup_.control, POLLIN, 0};
  fds[kProgram] = {dead_ ? -1 : setup_.pid_fd, POLLIN, 0};
  fds[kConnection] = {dead_ ? -1 : setup_.connection, POLLIN, 0};
  const Nanos left = wake_ == kNever ? kNever : std::max<Nanos>(wake_ - Wire::Now(), 0);
  const timespec timeout = {left / kSecond, left % kSecond};
  const int count = ppoll(fds.data(), fds.size(), wake_ == kNever ? nullptr : &timeout, nullptr);
  head.keeper_wakes.store(0);
  has_asked_ = watching_;
  if (count <= 0) fds[kSocket].revents = 0;
  readable_ = fds[kSocket].revents != 0;
  if (count <= 0) return;
  if (fds[kBell].revents != 0) {
    std::uint64_t rung;
    (void)!read(setup_.fds.keeper_bell, &rung, sizeof rung);
  }
  if (fds[kControl].revents != 0) {
    turns = turns + 1;  // a saved file may be spoiled, too
    TakeControl();
    turns = turns + 1;
  }
  std::uint8_t ignored;
  const bool hung_up =
      fds[kConnection].revents != 0 && recv(setup_.connection, &ignored, 1, MSG_DONTWAIT) <= 0;
  if (fds[kProgram].revents != 0 || hung_up) {
    dead_ = true;
    dead_since_ = Wire::Now();
  }
}

}  // namespace sekisho::pm
