// SPDX-License-Identifier: Apache-2.0
// A context as a program uses it.
#include "transport/pm/context.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace sekisho::pm {
namespace {

constexpr Nanos kKeeperLooksSoon = 4 * kMillisecond;  // then it need not be rung
constexpr Nanos kDaemonRetry = 100 * kMillisecond;
constexpr int kAskTimeoutMs = 5000;
constexpr Nanos kPredecessorTime = 5 * kSecond;  // for one that was killed to deliver what it said
constexpr Nanos kPredecessorPause = 5 * kMillisecond;
constexpr Nanos kStoppedPause = 50 * kMicrosecond;
constexpr Nanos kLongestPause = 10 * kMillisecond;  // its caller may have other work
constexpr Nanos kHeldBack = 100 * kMicrosecond;
constexpr Nanos kReadsEvery = kMillisecond;
constexpr std::size_t kMostHeldBack = 54 * 1024;  // bytes: with the next what leaves in one piece

void Pause(Nanos time) {
  const timespec left = {time / kSecond, time % kSecond};
  nanosleep(&left, nullptr);
}

}  // namespace

std::error_code Context::Open(const Config& config, const Address& own, const char* daemon,
                              int key_fd, std::unique_ptr<Context>& out,
                              const Wire::Options& options) {
  std::unique_ptr<Context> context(new (std::nothrow) Context);
  if (!context) return Error::kNoMemory;
  if (daemon != nullptr && !DaemonPath(daemon, context->daemon_)) return Error::kBadConfig;
  const auto error = daemon != nullptr ? context->OpenByDaemon(config, own, key_fd)
                                       : context->OpenAlone(config, own, options);
  if (error) return error;
  if (const auto failed = context->Begin()) return failed;
  out = std::move(context);
  return {};
}

// This process is its program.
std::error_code Context::Begin() {
  wire_.SetTrace(memory_.trace(), Side::kProgram);
  wire_.SetNear(near_);
  if (!has_daemon()) memory_.MindRings();
  memory_.Warm(hand_over().seen().area);
  head().program_pid.store(getpid());
  head().program_sleeps.store(0);
  head().program_waits.store(0);
  // What another program waited for.
  for (NodeId node = 0; node < config().nodes; ++node) Await(node, false);
  return timer_.Open();
}

std::error_code Context::OpenAlone(const Config& config, const Address& own,
                                   const Wire::Options& options) {
  if (Endpoint::MemoryNeeded(config) == 0) return Error::kBadConfig;
  if (const auto error = wire_.Open(own, options)) return error;
  return memory_.Make(config, wire_.own_address(), Wire::Now());
}

// On a connection of its own: a refusal ends one.
int Context::AskAnew(const AskMessage& ask, int key_fd, AnswerMessage& answer, Received& received) {
  if (connection_ >= 0) close(connection_);
  connection_ = ConnectDaemon(daemon_.data());
  if (connection_ < 0) return errno;
  const std::array<int, 1> fds = {key_fd};
  return AskDaemon(connection_, ask, fds, kAskTimeoutMs, answer, received);
}

std::error_code Context::OpenByDaemon(const Config& config, const Address& own, int key_fd) {
  AskMessage ask;
  ask.ask = Ask::kOpen;
  ask.config = config;
  ask.config.key = {};  // the daemon reads it from the file
  ask.own = own;
  AnswerMessage answer;
  Received received;
  int error;
  const Nanos limit = Wire::Now() + kPredecessorTime;
  while ((error = AskAnew(ask, key_fd, answer, received)) == EINPROGRESS && Wire::Now() < limit) {
    Pause(kPredecessorPause);
  }
  if (error == EINPROGRESS) error = EADDRINUSE;
  if (error == 0 && received.fd_count != ContextFds::kCount) error = EPROTO;
  if (error != 0) {
    for (std::size_t i = 0; i < received.fd_count; ++i) close(received.fds[i]);
    return {error, std::generic_category()};
  }
  keeper_bell_ = received.fds[2];
  program_bell_ = received.fds[3];
  const auto mapped = memory_.Map(received.fds[0]);
  const auto adopted = wire_.Adopt(received.fds[1]);
  if (mapped || adopted) return mapped ? mapped : adopted;
  Restore();  // of a context that was restored: another program's messages are not open here
  return {};
}

Context::~Context() {
  for (const int fd : {connection_, keeper_bell_, program_bell_}) {
    if (fd >= 0) close(fd);
  }
}

void Context::NoteCall() {
  constexpr std::uint32_t kAtOnce = 32;
  if (head().calls.fetch_add(1, std::memory_order_relaxed) % kAtOnce != 0) return;
  processor_.NoteCalls(kAtOnce);
  const Nanos now = Wire::Now();
  FindDaemon(now);
  if (may_be_near_) TendNear(now);
}

void Context::TendNear(Nanos now) {
  if (sleepers_ == 0) near_.Poll(now, wire_.socket_is_empty());
  // Who shares a processor is not there to take what lies in a ring, and reads it in vain at each
  // turn: the kernel says who has something, and wakes him.
  near_asker_.Tend(daemon_.data(), memory_.fd(), wire_.own_address(), view(), near_, now,
                   processor_.is_alone());
  head().near_in.store(near_.received(), std::memory_order_relaxed);
  head().near_out.store(near_.sent(), std::memory_order_relaxed);
}

// The daemon may have been killed: programs go on, and look for another.
void Context::FindDaemon(Nanos now) {
  if (now < look_for_daemon_) return;
  look_for_daemon_ = now + kDaemonRetry;
  if (connection_ >= 0 && !KeeperIsDead()) return;
  if (connection_ >= 0) close(connection_);
  connection_ = ConnectDaemon(daemon_.data(), false);
  if (connection_ < 0) return;
  AskMessage ask;
  ask.ask = Ask::kAdopt;
  ask.config.context = config().context;
  ask.config.node = config().node;
  const std::array<int, 4> fds = {memory_.fd(), wire_.fd(), keeper_bell_, program_bell_};
  (void)SendMessage(connection_, BytesOf(ask), fds);  // a refusal closes the connection
}

bool Context::KeeperIsDead() {
  if (connection_ < 0) return true;
  pollfd state = {connection_, POLLIN, 0};
  if (poll(&state, 1, 0) <= 0) return false;
  if ((state.revents & (POLLHUP | POLLERR)) != 0) return true;
  AnswerMessage answer;  // to an adoption
  const Received received = ReceiveMessage(connection_, RoomFor(answer));
  for (std::size_t i = 0; i < received.fd_count; ++i) close(received.fds[i]);
  return received.size == 0;
}

void Context::WaitForKeeper(int tries) {
  if (tries < 100) return;
  if (tries < 200) {
    sched_yield();
    return;
  }
  Pause(50 * kMicrosecond);
  if (tries % 20 != 0 || !KeeperIsDead()) return;
  // It died with the word in its hands.
  auto word = hand_over();
  const OwnerWord from = word.seen();
  if (from.owner != Side::kKeeper) return;
  OwnerWord mine;
  if (!word.Claim(from, false, mine)) return;
  const std::uint32_t area = word.SpareArea(mine);
  memory_.Rebuild(mine.area, area, Wire::Now());
  word.Move(mine, area);
  head().seizures.fetch_add(1);
  (void)word.GiveBack(mine);
}

Endpoint& Context::Take() {
  if (has_daemon()) {
    NoteCall();
  }
  auto word = hand_over();
  for (int tries = 0; !word.TryTake(mine_); ++tries) WaitForKeeper(tries);
  settling_ = settled_;
  return memory_.area(mine_.area);
}

// What a stopped job sends, takes or gives back would be in its state and not in what was saved.
Endpoint* Context::TakeRunning(WhenStopped when_stopped) {
  for (;;) {
    Endpoint& endpoint = Take();
    if (!endpoint.paused()) return &endpoint;
    (void)Give();
    if (when_stopped == WhenStopped::kRefuse) return nullptr;
    Progress();
    AwaitGo(has_daemon() && !KeeperIsDead() ? kLongestPause : kStoppedPause);
  }
}

// False: while we were stopped the daemon went on without us, and what we did since counts for
// nothing.
bool Context::Give() {
  Nanos deadline = memory_.area(mine_.area).NextDeadline();
  if (held_back_ > 0 && has_daemon()) deadline = std::min(deadline, Wire::Now() + kHeldBack);
  if (has_daemon()) head().deadline.store(deadline);
  if (!hand_over().GiveBack(mine_)) return false;
  if (settling_ != settled_) settled_ = settling_, noted_bytes_ = 0;
  if (has_daemon() && deadline != kNever &&
      head().keeper_wakes.load() > deadline + kKeeperLooksSoon) {
    RingKeeper();
  }
  return true;
}

void Context::RingKeeper() {
  head().keeper_wakes.store(0);  // once is enough
  head().rings.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  (void)!write(keeper_bell_, &one, sizeof one);
}

// A stopped job is the keeper's: it flushes at once, whatever the program does.
// It may give the lock away while it sleeps: not in the middle of what the caller does.
bool Context::LeaveToKeeper(IfStopped if_stopped) {
  if (!has_daemon() || !IsStopped() || KeeperIsDead()) return false;
  NoteCall();
  near_.Rest();
  if (near_.HasAny() || wire_.has_kept()) return false;  // the keeper does not see these
  RingForWave();
  if (if_stopped == IfStopped::kSleep) AwaitGo(kLongestPause);  // who polls has nothing to do now
  return true;
}

// The keeper may not be watching: it believes that the program takes what comes.
void Context::RingForWave() {
  const std::uint64_t wave = gang().wave;
  if (wave == left_wave_) return;
  left_wave_ = wave;
  RingKeeper();
}

// A stopped program that polls would take the processor from the job whose turn it is: the keeper
// rings.
void Context::AwaitGo(Nanos time) {
  set_sleeping(true);
  if (IsStopped() && !near_.HasAny()) {
    if (HasStoppedAsJoined(gang())) time = kStoppedPause;  // of that it was told before
    pollfd bell = {program_bell_, POLLIN, 0};
    const timespec left = {time / kSecond, time % kSecond};
    if (lock_ != nullptr) lock_->unlock();  // who lets the job go on may be another thread
    (void)ppoll(&bell, program_bell_ >= 0 ? 1 : 0, &left, nullptr);
    if (lock_ != nullptr) lock_->lock();
    if (bell.revents != 0 && sleepers_ == 1) Quiet();  // else it is for the others, too
  }
  set_sleeping(false);
}

void Context::AskGang(bool stop) { TellGang(&Endpoint::AskGang, stop); }
void Context::JoinGang(bool stop) { TellGang(&Endpoint::JoinGang, stop); }

void Context::TellGang(void (Endpoint::*tell)(bool, Nanos), bool stop) {
  stops_ = stop;
  do {
    Endpoint& endpoint = Take();
    Settle(endpoint);
    const Nanos now = Wire::Now();
    (endpoint.*tell)(stop, now);
    Flush(endpoint, now);
  } while (!Give());
}

void Context::Flush(Endpoint& endpoint, Nanos now) {
  held_back_ = 0;
  wire_.Flush(endpoint, {&head().word, mine_.bits()}, now);
}

std::error_code Context::SetAddress(NodeId node, const Address& address) {
  std::error_code error;
  do {
    error = Take().SetAddress(node, address);
  } while (!Give());
  return error;
}

std::error_code Context::Room(NodeId node, ChannelId channel, std::size_t length,
                              std::uint64_t others) {
  if (IsStopped()) return Error::kWouldBlock;
  const Nanos stop = head().stop_is_near.load(std::memory_order_relaxed);
  if (stop != 0 && IsNear(stop, Wire::Now())) {
    refused_until_ = stop;
    return Error::kWouldBlock;
  }
  refused_until_ = kNever;
  return view().Room(node, channel, length, others);
}

std::error_code Context::TrySend(NodeId node, ChannelId channel, MessageKind kind, Bytes begin,
                                 Bytes end) {
  return Send(WhenStopped::kRefuse, node, channel, kind, begin, end, false);
}

std::error_code Context::Send(WhenStopped when_stopped, NodeId node, ChannelId channel,
                              MessageKind kind, Bytes begin, Bytes end, bool more) {
  if (node >= config().nodes || channel >= config().channels) return Error::kBadNode;
  for (;;) {
    Endpoint* const endpoint = TakeRunning(when_stopped);
    if (endpoint == nullptr) return Error::kWouldBlock;
    const std::uint64_t before = endpoint->send_streams(node)[channel].written;
    const Nanos now = Wire::Now();
    const auto error = endpoint->Send(node, channel, kind, begin, end, now);
    if (more && !error) held_back_ += begin.size() + end.size();
    if (!more || held_back_ >= kMostHeldBack) Flush(*endpoint, now);
    const bool given = Give();
    // Who only sends must learn what was acknowledged, too.  Not often: what waits for that is sent
    // in few datagrams then.
    if (given && !more && now - progressed_ > kReadsEvery) Progress(false, IfStopped::kReturn);
    if (given || error) return error;
    // Whether the daemon found the message when it took over.
    const bool known = Take().send_streams(node)[channel].written != before;
    (void)Give();
    if (known) return {};
  }
}

void Context::Hurry(NodeId node) {
  if (!view().MayHurry(node)) return;
  Endpoint& endpoint = Take();
  const Nanos now = Wire::Now();
  endpoint.Hurry(node, now);
  Flush(endpoint, now);
  (void)Give();
}

void Context::Await(NodeId node, bool awaits) {
  if (view().peer(node).is_awaited == awaits) return;
  do {
    Take().Await(node, awaits, Wire::Now());
  } while (!Give());
}

void Context::LeaveToDaemon() {
  if (connection_ >= 0) (void)shutdown(connection_, SHUT_RDWR);
}

void Context::CloseAll() {
  Endpoint& endpoint = Take();
  const Nanos now = Wire::Now();
  for (NodeId node = 0; node < config().nodes; ++node) (void)endpoint.Close(node, now);
  Flush(endpoint, now);
  (void)Give();
}

void Context::Progress(bool spins, IfStopped if_stopped) {
  if (LeaveToKeeper(if_stopped)) {
    progressed_ = Wire::Now();
    return;
  }
  for (int i = 0; i < 4; ++i) {
    const std::size_t pulled = wire_.Pull(spins);
    const bool full = wire_.full();
    const Nanos now = Wire::Now();
    progressed_ = now;
    if (pulled == 0 && view().NextDeadline() > now && !HasNotes() && held_back_ == 0) {
      if (has_daemon()) {
        NoteCall();
        if (sleepers_ == 0) near_.Poll(now, wire_.socket_is_empty());
      }
      return;
    }
    Endpoint& endpoint = Take();
    Settle(endpoint);  // before anything that may stop the job
    wire_.Feed(endpoint, now);
    if (sleepers_ == 0) near_.Poll(now, wire_.socket_is_empty());
    endpoint.NoteProgram(head().program_waits.load(std::memory_order_relaxed) != 0);
    if (endpoint.NextDeadline() <= now) endpoint.OnTimer(now);
    Flush(endpoint, now);
    if (!Give() || !full) return;
  }
}

void Context::Quiet() {
  std::uint64_t count;
  if (program_bell_ >= 0) (void)!read(program_bell_, &count, sizeof count);
}

}  // namespace sekisho::pm
