// SPDX-License-Identifier: Apache-2.0
// The protocol core of PM: docs/protocol/9-pm.md.  A pure function of calls, datagrams and the time
// that comes with them; no clock, no socket, no thread, no allocation after Init.
#pragma once

#include <array>
#include <cstdint>
#include <system_error>

#include "transport/pm/errors.h"
#include "transport/pm/peer.h"

namespace sekisho::pm {

// A message, or a piece of one, in the receive ring; valid until Release of its channel.
struct Message {
  NodeId source = 0;
  ChannelId channel = 0;
  bool more = false;  // another piece of the same message follows
  MessageKind kind = MessageKind::kProgram;
  std::uint64_t end = 0;  // of it in its stream
  Pieces bytes;
};

// A datagram to be sent, in the caller's room.
struct Outgoing {
  Address to;
  std::size_t size = 0;
  std::uint32_t node = kNil;  // where it goes, for OnRefused; kNil: an answer to a greeting
  bool is_probe = false;      // of the path MTU: by the socket alone, and nothing behind it
};

class Endpoint {
 public:
  // Bytes of memory that Init wants; 0 if the configuration is out of its limits.  It is the area,
  // all that the protocol knows, and the rings, the bytes of messages.
  static std::size_t MemoryNeeded(const Config& config);
  static std::size_t AreaNeeded(const Config& config);
  static std::size_t RingsNeeded(const Config& config);

  // `memory`, aligned to 64, and `cipher`, which may be null, outlive the endpoint.
  std::error_code Init(const Config& config, MutableBytes memory, Cipher* cipher, Nanos now);
  std::error_code Init(const Config& config, MutableBytes area, MutableBytes rings, Cipher* cipher,
                       Nanos now);
  // To memory that another endpoint of the same configuration initialised, in this process or
  // another.  Whatever is in it, no byte outside is touched; see Spoiled().
  std::error_code Attach(const Config& config, MutableBytes area, MutableBytes rings);
  // After Init on other memory, with the same rings: goes on where `torn` was when its owner was
  // killed or stopped, at whatever instruction.  What was in flight is sent again.
  void Rebuild(const Endpoint& torn);
  // The application holds no message, whatever Rebuild found.
  void DropOpen();
  // It holds all messages of this channel that lie before `end`.
  void Hold(NodeId node, ChannelId channel, std::uint64_t end);
  // Network preemption (gang.h).  This node wants the whole job to stop, or to go on.
  void AskGang(bool stop, Nanos now);
  // It wants the job that runs to stop, or the one that is settled to go on, once all nodes want
  // it.
  void JoinGang(bool stop, Nanos now);
  // Whether the program waits for messages: part of the global state of a stopped job.
  void NoteProgram(bool waits) { state_->program_waits = waits; }
  // This node has another address since it was last heard.
  void Moved(Nanos now);
  const GangNote& gang() const { return state_->gang; }
  const GangNote& gang(NodeId node) const { return peers_[node].gang; }
  // It sends no data that was not sent before.
  bool paused() const { return PhaseOf(state_->gang.wave) != GangPhase::kRunning; }
  // Nothing of ours is on its way.
  bool Flushed() const;
  // The application is dead: messages that it gave in part will never be complete.
  void DropParts();
  std::error_code SetAddress(NodeId node, const Address& address);

  // The application.  Send takes the whole message or nothing; Begin and then Append until its
  // length is reached take it in parts (Append says how many bytes it took).
  std::error_code Send(NodeId node, ChannelId channel, Bytes message, Nanos now) {
    return Send(node, channel, MessageKind::kProgram, message, {}, now);
  }
  std::error_code Send(NodeId node, ChannelId channel, MessageKind kind, Bytes begin, Bytes end,
                       Nanos now);
  // What Send of this length would say now, or after `others` messages that are part of the length.
  std::error_code Room(NodeId node, ChannelId channel, std::size_t length,
                       std::uint64_t others = 0) const;
  std::error_code Begin(NodeId node, ChannelId channel, std::uint32_t length, Nanos now);
  std::size_t Append(NodeId node, ChannelId channel, Bytes part, Nanos now);
  // The next message, also of a channel of which some are open already.  Release gives the first
  // of those back.
  bool Receive(Message& message);
  bool HasMessage() const { return !state_->ready.empty(); }
  std::error_code Release(NodeId node, ChannelId channel, Nanos now);
  // All open messages of this channel before `end`, if the session is still the same; whatever the
  // arguments, and also if some of them were given back before.
  void GiveBack(NodeId node, ChannelId channel, std::uint32_t session, std::uint64_t end);
  std::error_code Close(NodeId node, Nanos now);

  // The network.  After any call: NextDatagram until it says 0, then wait for NextDeadline at most.
  // A datagram may be decrypted in place.
  void OnDatagram(const Address& from, MutableBytes datagram, bool ce, Nanos now);
  std::size_t NextDatagram(Nanos now, MutableBytes room, Address& to);
  // The same, and for whom: for OnRefused.
  bool NextOutgoing(Nanos now, MutableBytes room, Outgoing& out);
  // What arrived just now is acknowledged with the next datagram: no data will carry that soon.
  void AcknowledgeAtOnce();
  // The application waits for the acknowledgement of what it sent: the peer is asked for it.
  void Hurry(NodeId node, Nanos now);
  // Whether the application waits for what the peer's program says: then it is asked if it lives.
  void Await(NodeId node, bool awaits, Nanos now);
  // The own interface carries nothing as long as the last datagram to this node.
  void OnRefused(NodeId node, bool is_probe, Nanos now);
  // Whether that would change anything.
  bool MayHurry(NodeId node) const {
    return peers_[node].has_session && sessions_[node].no_hurry &&
           sessions_[node].in_flight_packets > 0;
  }
  // Acknowledgements that would be due before `until`, and messages that are held back until then,
  // leave with what is sent next: the caller goes to sleep.
  void SendBefore(Nanos until, Nanos now);
  // False: neither would say anything now.
  bool HasWork() const { return state_->reply_count > 0 || !state_->work.empty(); }
  // Whom NextDatagram looks at next, and behind him Peer::work_next; or kNil.
  std::uint32_t first_work() const { return state_->work.first; }
  void OnTimer(Nanos now);
  Nanos NextDeadline() const { return deadlines_.earliest(); }

  PeerState peer_state(NodeId node) const { return peers_[node].state; }
  Reason peer_reason(NodeId node) const { return peers_[node].reason; }
  // Grows when a peer came back as a newer incarnation.
  std::uint32_t peer_session(NodeId node) const { return peers_[node].session; }
  const Peer& peer(NodeId node) const { return peers_[node]; }
  // Of a peer that has one.
  const Session& session(NodeId node) const { return sessions_[node]; }
  std::span<const SendStream> send_streams(NodeId node) const {
    return send_streams_.part(StreamIndex(node, 0), config_.channels);
  }
  const ReceiveStream& receive_stream(NodeId node, ChannelId channel) const {
    return receive_streams_[StreamIndex(node, channel)];
  }
  // Rings that were empty for long are given to `forget`: no byte of them counts any more.  Not
  // where another process may drive, too: who was stopped and left behind right before he forgets
  // would forget what has arrived since.
  using Forget = void (*)(MutableBytes rings);
  void MindRings(Forget forget) { forget_ = forget; }
  // While another driver may still store what came in the sessions that there are: none is
  // replaced.
  void KeepSessions(bool keep) { keeps_sessions_ = keep; }
  // Everything that was accepted for this peer was acknowledged.
  bool Drained(NodeId node) const;
  const Counters& counters() const { return state_->counters; }
  const Config& config() const { return config_; }

  // What is wrong with the state, or null; for tests, O(everything).
  const char* Check() const;
  // The same in parts: of one peer, which also adds what it holds, and of the sum over all peers.
  struct Held {
    std::uint64_t records = 0, segments = 0, intervals = 0, beyond = 0;
  };
  const char* Check(NodeId node, Held& held) const;
  const char* CheckSum(const Held& all) const;

 private:
  struct Reply {
    Kind kind = Kind::kChallenge;
    NodeId node = 0;
    Address to;
    Greeting greeting;
  };

  // endpoint_memory.cc
  void RebuildSend(const SendStream& from, SendStream& out);
  std::uint64_t RebuildReceive(const Endpoint& torn, const ReceiveStream& from, ReceiveStream& in);
  void RebuildPeer(const Endpoint& torn, NodeId node);
  void SetOpened(std::uint32_t stream, std::uint64_t end);
  void ReleaseOne(std::uint32_t stream, std::uint64_t end);

  // endpoint.cc
  void Cut(Arena& area, Arena& rings);
  std::error_code Place(const Config& config, MutableBytes area, MutableBytes rings,
                        Arena::Mode mode);
  Nanos Clock(Nanos now) { return state_->now = now > state_->now ? now : state_->now; }
  std::error_code CheckCall(NodeId node, ChannelId channel) const;
  std::uint32_t StreamIndex(NodeId node, std::size_t channel) const {
    return static_cast<std::uint32_t>(node * std::size_t{config_.channels} + channel);
  }
  MutableBytes SendRing(std::uint32_t stream) {
    return Ring(send_rings_, config_.send_ring, stream);
  }
  MutableBytes ReceiveRing(std::uint32_t stream) {
    return Ring(receive_rings_, config_.receive_ring, stream);
  }
  MutableBytes Ring(MutableBytes rings, std::size_t size, std::uint32_t stream) const {
    stream = Once(stream);
    if (stream >= send_streams_.size()) Spoiled();
    return rings.subspan(stream * size, size);
  }
  NodeId IdOf(const Peer& peer) const { return static_cast<NodeId>(&peer - peers_.data()); }
  // Means something only if it has one; never outside, as the peer is not.
  Session& SessionOf(const Peer& peer) const { return sessions_.data()[IdOf(peer)]; }
  ReceiveWindow::Bits& BitsOf(const Peer& peer) const { return window_bits_.data()[IdOf(peer)]; }
  std::span<ReceiveStream> receive_streams(NodeId node) const {
    return receive_streams_.part(StreamIndex(node, 0), config_.channels);
  }
  void Work(Peer& peer);
  void Reschedule(Peer& peer);
  void SessionTimer(Peer& peer);
  // endpoint_memory.cc
  void WatchRings(Session& session) {
    if (forget_ == nullptr || session.rings_at != kNever) return;
    session.rings_at = state_->now + kRingsIdle;
  }
  void LookAtRings(Peer& peer);
  bool HasEmptyRings(const Peer& peer) const;
  bool AwaitsGang(const Peer& peer) const { return LeadsInstead(peer) || HoldsGangUp(peer); }
  bool Awaits(const Peer& peer) const;
  void WatchSilence(Peer& peer);
  void OnSilence(Peer& peer);
  void Gone(Peer& peer, Reason reason);
  void ForgetFlight(Peer& peer);
  void MakeReady(std::uint32_t stream);

  // endpoint_gang.cc
  NodeId Leader() const;
  bool Idle() const;
  void TellGang(Peer& peer);
  void NoteReplaced(Peer& peer);
  bool MayBeAway(const Peer& peer) const;
  bool LeadsInstead(const Peer& peer) const;
  bool HoldsGangUp(const Peer& peer) const;
  void SetWave(std::uint64_t wave);
  void StepGang();
  void OnGang(Peer& peer, const GangNote& said, std::uint64_t number);
  void RebuildGang(const Endpoint& torn);

  // greeting.cc
  void StartGreeting(Peer& peer);
  void OnGreeting(const Address& from, MutableBytes datagram, const Packet& packet);
  void OnHello(const Address& from, Peer& peer, const Greeting& greeting);
  void Challenge(const Address& from, const Peer& peer, const Greeting& greeting);
  void OnChallenge(Peer& peer, const Greeting& greeting);
  void OnAnswer(const Address& from, Peer& peer, const Greeting& greeting);
  void OnWelcome(Peer& peer, const Greeting& greeting);
  static void EndSendStream(SendStream& out);
  void StartSession(Peer& peer, const Greeting& greeting);
  void GreetTimeout(Peer& peer);
  std::size_t BuildGreeting(Peer& peer, MutableBytes room);
  std::uint64_t Cookie(const Address& from, NodeId node, const Greeting& greeting,
                       std::uint64_t period) const;
  void PushReply(const Reply& reply);
  std::size_t WriteGreetingPacket(Kind kind, const Peer& peer, const Greeting& greeting,
                                  MutableBytes room);
  bool MustKeepSession(const Peer& peer) const;

  // endpoint_receive.cc
  void OnData(MutableBytes datagram, const Packet& packet, bool ce);
  struct Contents {
    bool eliciting = false, closing = false, padded = false;
  };
  bool Acceptable(Peer& peer, const Packet& packet, Contents& contents);
  bool Apply(Peer& peer, const Packet& packet);
  bool StoreData(Peer& peer, const Frame& frame);
  void RepeatLimits(Peer& peer);
  void NoteArrival(Peer& peer, const Packet& packet, const Contents& contents, bool ce);
  void AllotGrants();
  void CountBeyond(Session& session, std::uint32_t bytes);
  bool ForgetUnusedGrants();
  std::uint64_t Allowance(Session& session);
  void NoteReceived(Session& session, std::uint64_t fresh);

  // loss.cc
  void OnAck(Peer& peer, const Frame& ack);
  void SampleRtt(Session& session, const Sent& packet, const Frame& ack);
  void Acknowledge(Session& session, std::uint32_t sent, bool was_lost, Congestion::Newest& newest);
  void AcknowledgeSegment(Session& session, const SegmentRef& ref);
  void DetectLosses(Peer& peer);
  void RepeatCredits(const Peer& peer);
  void DeclareLost(Peer& peer, std::uint32_t sent, bool by_gap);
  void ForgetLost(Session& session);
  void GiveUpFlight(Peer& peer, std::uint32_t keep);
  void OnProbeTimeout(Peer& peer);
  void NoteLoss(Session& session, std::uint64_t packets);
  void NoteFound(Session& session);
  Nanos ProbeDeadline(const Session& session) const;
  Nanos KeptAliveUntil(const Session& session) const {
    return std::max(session.largest_time, state_->went_on) + config_.keep_alive_ms * kMillisecond;
  }
  Nanos ReorderWindow(const Session& session) const;

  // mtu.cc
  void SetMtu(Session& session, std::uint16_t mtu);
  void OnMtuBlackHole(Session& session);
  void NoteLargePacket(Session& session, std::uint32_t size, bool arrived);
  void OnMtuProbe(Session& session, bool arrived);
  std::uint16_t NextMtu(const Session& session) const;  // to be tried now, or 0
  std::size_t BuildMtuProbe(Peer& peer, MutableBytes room);

  // endpoint_send.cc
  struct Draft;
  std::size_t Build(Peer& peer, MutableBytes room);
  std::size_t BuildClose(Peer& peer, MutableBytes room, std::size_t limit);
  bool MaySend(Session& session);
  bool Hold(Session& session, std::uint64_t backlog, std::size_t room);
  std::uint64_t Backlog(const Peer& peer) const;
  bool MustWait(const Peer& peer, std::uint64_t backlog, std::uint64_t more) const;
  bool HasSomethingToSay(const Peer& peer) const;
  bool NeedsCredit(const Peer& peer) const;
  void AddAck(Peer& peer, Draft& draft);
  void AddControl(Peer& peer, Draft& draft, std::uint64_t backlog);
  std::uint32_t Fitting(const Draft& draft, std::uint32_t index) const;
  void AddLost(Session& session, Draft& draft);
  void AddNew(Peer& peer, Draft& draft, std::uint64_t backlog);
  bool SplitSegment(std::uint32_t index, std::uint32_t length);
  bool IsCalm(const Session& session) const { return state_->now - session.last_loss >= kCalm; }
  bool IsTrusted(const Session& session) const {
    return state_->now - session.last_loss >= kTrustedAfter;
  }
  bool HasTime(const Session& session, const Draft& draft) const;
  std::size_t Finish(Peer& peer, Draft& draft, MutableBytes room);
  std::size_t Assemble(Peer& peer, const Draft& draft, std::uint64_t number, bool has_time,
                       MutableBytes room);
  std::uint64_t Floor(const Session& session) const;

  // What is neither of one peer nor a record; in the memory, too.  No pointers: the memory lies at
  // another address in every process.
  struct State {
    Nanos now = 0;
    Counters counters;
    SipKey cookie_key{};
    std::uint64_t nonce_counter = 0;
    GangNote gang, gang_told;  // what we know, and what of it we said last
    bool gang_active = false;  // anyone ever said anything
    Nanos went_on = 0;         // the job, after a stop, in which most say nothing to each other
    bool program_waits = false;
    PoolHead sent, segments, intervals;
    std::uint32_t deadlines = 0;  // how many
    List<Peer, &Peer::work_next, &Peer::work_previous> work;
    List<Session, &Session::grant_next, &Session::grant_previous> grants;
    ReadyList ready;
    std::uint64_t granted_beyond = 0;  // sum over all peers
    Nanos grants_looked_at = 0;        // for those that nobody uses
    std::uint32_t epoch = UINT32_MAX;  // senders are counted per epoch
    std::uint32_t senders_now = 0, senders_before = 0;
    std::uint32_t burst = 0;  // bytes in a row to the first of work
    std::array<Reply, 32> replies;
    std::uint32_t reply_first = 0, reply_count = 0;
  };

  Config config_;
  Cipher* cipher_ = nullptr;
  std::uint32_t built_for_ = kNil;  // a node
  bool built_probe_ = false;
  Forget forget_ = nullptr;
  bool keeps_sessions_ = false;
  PayloadKey payload_key_{};
  State* state_ = nullptr;
  Items<Peer> peers_;
  Items<Session> sessions_;
  Items<ReceiveWindow::Bits> window_bits_;
  Items<SendStream> send_streams_;
  Items<ReceiveStream> receive_streams_;
  MutableBytes send_rings_, receive_rings_;
  Pool<Sent> sent_;
  Pool<Segment> segments_;
  Pool<Interval> intervals_;
  Items<Sent> sent_items_;
  Items<Segment> segment_items_;
  Items<Interval> interval_items_;
  DeadlineHeap deadlines_;
};

}  // namespace sekisho::pm
