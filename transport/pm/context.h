// SPDX-License-Identifier: Apache-2.0
// A context as a program uses it: on its own, or made and kept alive by sekisho-pmd.
// docs/protocol/9-pm.md, "Two drivers".
#pragma once

#include <array>
#include <memory>
#include <system_error>

#include "transport/pm/call_lock.h"
#include "transport/pm/lazy_timer.h"
#include "transport/pm/near_asker.h"
#include "transport/pm/near_links.h"
#include "transport/pm/own_processor.h"
#include "transport/pm/shared_memory.h"
#include "transport/pm/socket_sleep.h"
#include "transport/pm/spin_history.h"
#include "transport/pm/unix_message.h"
#include "transport/pm/wait_loop.h"
#include "transport/pm/wire.h"
#include "transport/pm/yield_history.h"

namespace sekisho::pm {

// Its caller sees to it that one thread at a time calls; see set_lock.
class Context {
 public:
  // `daemon`: path of its socket, or null: nobody drives but we.  `key_fd`: the job's key file,
  // which proves to the daemon that we may.  `options`: of the socket, if there is no daemon.
  static std::error_code Open(const Config& config, const Address& own, const char* daemon,
                              int key_fd, std::unique_ptr<Context>& context,
                              const Wire::Options& options = {});
  // Puts what it consists of into a descriptor, from which another process makes it again.  After
  // that it is only to be destroyed.
  std::error_code Detach(int& fd);
  // `fd` is closed if it succeeds.
  static std::error_code Attach(int fd, std::unique_ptr<Context>& context);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  std::error_code SetAddress(NodeId node, const Address& address);
  std::error_code Room(NodeId node, ChannelId channel, std::size_t length,
                       std::uint64_t others = 0);
  // Exactly once, also if we are stopped in it and the daemon goes on meanwhile.  Waits, as Release
  // does, as long as the job is stopped.
  std::error_code Send(NodeId node, ChannelId channel, Bytes message) {
    return Send(WhenStopped::kWait, node, channel, MessageKind::kProgram, message, {}, false);
  }
  // Likewise, but it leaves with what another call sends soon, or by the daemon in 0.1 ms.
  std::error_code SendMore(NodeId node, ChannelId channel, Bytes message) {
    return Send(WhenStopped::kWait, node, channel, MessageKind::kProgram, message, {}, true);
  }
  // kWouldBlock in a stopped job.
  std::error_code TrySend(NodeId node, ChannelId channel, MessageKind kind, Bytes begin, Bytes end);
  // The next message; at most kHeldMax are held at a time.  They may be released in any order.
  static constexpr std::size_t kHeldMax = 256;
  bool Receive(Message& message);
  void Release(const Message& message) { (void)Release(WhenStopped::kWait, message); }
  // False in a stopped job.
  bool TryRelease(const Message& message) { return Release(WhenStopped::kRefuse, message); }
  void CloseAll();
  // The daemon goes on alone, also if a child of fork holds our descriptors.
  void LeaveToDaemon();
  // Takes what arrived, does what is due, sends what may leave.
  void Progress() { Progress(false); }
  // Who asks for room at many nodes in turn need not look for acknowledgements each time.
  bool HasJustProgressed() const { return Wire::Now() - progressed_ < kJustNow; }
  // Until a message is there or `until`; as the policy says.
  bool Wait(Nanos until) { return Wait(until, {HasMessageOf, this}); }
  // The same with what the caller waits for; asked whenever there was progress.
  struct Condition {
    bool (*holds)(void* of);
    void* of;
  };
  bool Wait(Nanos until, Condition condition);
  // Sleeps until something arrives, the protocol must act, or `until`; then makes progress.
  void Sleep(Nanos until);
  void set_waiting(Waiting waiting) { waiting_ = waiting; }
  // Asks the node for the acknowledgement of what it was sent: the caller waits for that.
  void Hurry(NodeId node);
  // The caller waits for what the node's program says: it is asked whether it lives.
  void Await(NodeId node, bool awaits);
  // Whether datagrams may go through memory to programs of this host; with a daemon only.
  void set_near(bool near) { may_be_near_ = near; }
  // Held by whoever calls; given away while Wait sleeps or a stopped job makes Send wait.  Only one
  // thread may be in Wait.
  void set_lock(CallLock* lock) { lock_ = lock; }
  // After a call: what the thread in Wait sleeps for may have changed.
  void NoteChange(bool holds);

  PeerState peer_state(NodeId node) { return view().peer_state(node); }
  std::uint32_t peer_session(NodeId node) { return view().peer_session(node); }
  const Address& peer_address(NodeId node) { return view().peer(node).address; }
  const Counters& counters() { return view().counters(); }
  // How far a channel was written and acknowledged in this session.
  std::uint64_t Written(NodeId node, ChannelId channel) {
    return view().send_streams(node)[channel].written;
  }
  std::uint64_t Acknowledged(NodeId node, ChannelId channel) {
    return view().send_streams(node)[channel].acked;
  }
  const WireCounters& wire_counters() const { return wire_.counters(); }
  // Whether a datagram waits in memory, of which nothing wakes one who sleeps.
  bool HasNear() const { return near_.HasAny(); }
  // Datagrams that went through memory.
  std::uint64_t near_sent() const { return near_.sent(); }
  std::uint64_t near_received() const { return near_.received(); }
  bool Drained(NodeId node) { return view().Drained(node); }
  // When there is something to do if nothing arrives.
  Nanos NextDeadline() { return std::min(view().NextDeadline(), refused_until_); }
  // Of a sleep: who was refused room until then asks again.
  void NoteWoken(Nanos now) {
    if (refused_until_ <= now) refused_until_ = kNever;
  }
  bool IsRefused() const { return refused_until_ != kNever; }
  bool HasMessage() { return !IsStopped() && view().HasMessage(); }
  // Network preemption: nothing is sent and nothing delivered.
  bool IsStopped() { return view().paused(); }
  GangNote gang() { return view().gang(); }
  void AskGang(bool stop);
  void JoinGang(bool stop);
  const Config& config() const { return memory_.config(); }
  SharedHead& head() { return memory_.head(); }
  const Address& own_address() const { return wire_.own_address(); }
  bool has_daemon() const { return daemon_[0] != 0; }
  // As often true as false: several threads may sleep.
  void set_sleeping(bool sleeping) {
    if (!sleeping && sleepers_ == 0) return;
    sleepers_ += sleeping ? 1 : -1;
    head().program_sleeps.store(sleepers_ > 0 ? 1 : 0);
    if (!sleeping) return;
    processor_.NoteGivenAway();
    near_.Rest();
  }
  void set_waits(bool waits) { head().program_waits.store(waits ? 1 : 0); }
  int fd() const { return wire_.fd(); }
  int bell() const { return program_bell_; }
  void Quiet();  // empties the bell

 private:
  enum class WhenStopped : std::uint8_t { kWait, kRefuse };

  Context() = default;
  std::error_code Begin();
  std::error_code Announce();
  std::error_code OpenAlone(const Config& config, const Address& own, const Wire::Options& options);
  int AskAnew(const AskMessage& ask, int key_fd, AnswerMessage& answer, Received& received);
  std::error_code OpenByDaemon(const Config& config, const Address& own, int key_fd);
  // The state as it is, without the word: good for hints.
  Endpoint& view() { return memory_.area(hand_over().seen().area); }
  SharedHandOver hand_over() { return {head().word, Side::kProgram}; }
  Endpoint& Take();
  Endpoint* TakeRunning(WhenStopped when_stopped);
  std::error_code Send(WhenStopped when_stopped, NodeId node, ChannelId channel, MessageKind kind,
                       Bytes begin, Bytes end, bool more);
  bool Release(WhenStopped when_stopped, const Message& message);
  void Restore();
  bool HasNotes() { return head().releases.count() != settled_; }
  void NoteReleased(NodeId node, ChannelId channel);
  void Settle(Endpoint& endpoint);
  void TellGang(void (Endpoint::*tell)(bool, Nanos), bool stop);
  bool Give();
  void Flush(Endpoint& endpoint, Nanos now);
  enum class IfStopped : std::uint8_t { kSleep, kReturn };
  void Progress(bool spins, IfStopped if_stopped = IfStopped::kSleep);
  bool LeaveToKeeper(IfStopped if_stopped);
  void RingForWave();
  void AwaitGo(Nanos time);
  void RingKeeper();
  void WaitForKeeper(int tries);
  bool KeeperIsDead();
  static bool HasMessageOf(void* context) { return static_cast<Context*>(context)->HasMessage(); }
  bool WaitUntil(Nanos until, Condition condition);
  void Yield(Nanos now);
  void Poll(Nanos until, Condition condition);
  void PrepareToSleep();
  bool MaySleepInSocket(Nanos until, Nanos deadline, Nanos now) const;
  void SleepInSocket(Nanos now);
  void SleepInPoll(bool alone, Nanos until, Nanos deadline, Nanos now);
  void NoteCall();
  void FindDaemon(Nanos now);
  void TendNear(Nanos now);

  // A message that the caller has, or has released before one that came earlier.
  struct Held {
    NodeId node;
    ChannelId channel;
    bool released;
    std::uint32_t session;
    std::uint64_t end;
  };

  SharedMemory memory_;
  Wire wire_;
  NearLinks near_;
  NearAsker near_asker_;
  bool may_be_near_ = true;
  OwnerWord mine_;
  int connection_ = -1;  // to the daemon; -1: none now
  int keeper_bell_ = -1, program_bell_ = -1;
  LazyTimer timer_;
  Nanos look_for_daemon_ = 0;
  static constexpr Nanos kJustNow = 10 * kMicrosecond;
  Nanos progressed_ = 0;
  Nanos refused_until_ = kNever;  // room, as a stop is near; it may not come
  std::array<char, 108> daemon_{};
  std::array<Held, kHeldMax> held_;  // as they came
  std::size_t held_count_ = 0;
  std::uint32_t settled_ = 0;      // notes of releases that are done
  std::uint32_t settling_ = 0;     // that will be, once the word is given back
  std::uint64_t noted_bytes_ = 0;  // since then
  bool stops_ = false;             // we wanted the job to stop
  std::size_t held_back_ = 0;      // bytes that leave with the next message
  CallLock* lock_ = nullptr;
  int sleepers_ = 0;
  bool polls_ = false;   // a thread sleeps in Wait
  bool awaits_ = false;  // in the call that receives
  SocketSleep socket_sleep_;
  Waiting waiting_ = Waiting::kAdaptive;
  std::uint64_t left_wave_ = 0;  // of a stopped job, when the keeper was rung for it
  SpinHistory spins_;
  YieldHistory yields_;
  OwnProcessor processor_;
};

}  // namespace sekisho::pm
