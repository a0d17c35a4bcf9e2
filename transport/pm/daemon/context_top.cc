// SPDX-License-Identifier: Apache-2.0
#include "transport/pm/daemon/context_top.h"

#include <stdio.h>

namespace sekisho::pm {
namespace {

const char* Name(PeerState state) {
  switch (state) {
    case PeerState::kUnknown:
      return "unknown";
    case PeerState::kGreeting:
      return "greeting";
    case PeerState::kUp:
      return "up";
    case PeerState::kSuspect:
      return "suspect";
    case PeerState::kGone:
      return "gone";
  }
  return "?";
}

const char* Name(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "none";
    case Reason::kSilent:
      return "silent";
    case Reason::kClosed:
      return "closed";
    case Reason::kLeft:
      return "left";
    case Reason::kRestarted:
      return "restarted";
    case Reason::kViolation:
      return "violation";
    case Reason::kRefused:
      return "refused";
  }
  return "?";
}

// Lines, as long as they fit, and room for one that says what is missing.
class Page {
 public:
  explicit Page(std::span<char> text) : text_(text) {}
  bool Add(const char* format, auto... values) {
    const std::size_t room = text_.size() - used_;
    const int size = snprintf(text_.data() + used_, room, format, values...);
    const bool fits = size > 0 && static_cast<std::size_t>(size) + kLast < room;
    if (fits) used_ += static_cast<std::size_t>(size);
    text_[used_] = 0;
    return fits;
  }
  void AddLast(NodeId next) {
    (void)snprintf(text_.data() + used_, text_.size() - used_, "more %u\n", next);
  }

 private:
  static constexpr std::size_t kLast = 32;
  std::span<char> text_;
  std::size_t used_ = 0;
};

using Number = unsigned long long;

// Of a peer, and what its channels may still be sent.
bool Describe(Page& page, const Endpoint& endpoint, NodeId node) {
  const Peer& peer = endpoint.peer(node);
  if (!peer.has_session || peer.state == PeerState::kGone) {
    return page.Add("peer %u state %s reason %s\n", node, Name(peer.state), Name(peer.reason));
  }
  const Session& session = endpoint.session(node);
  Number bytes = 0, messages = 0;
  for (const SendStream& out : endpoint.send_streams(node)) {
    bytes += out.byte_limit - out.cut;
    messages += out.message_limit - out.messages;
  }
  return page.Add(
      "peer %u state %s rtt_us %.1f window %llu in_flight %llu mtu %u "
      "credit_bytes %llu credit_messages %llu granted %llu lost_gap %u lost_timeout %u "
      "policed %d\n",
      node, Name(peer.state), static_cast<double>(session.rtt.smoothed()) / 1000.0,
      Number{session.congestion.window()}, Number{session.in_flight}, session.mtu, bytes, messages,
      Number{session.grant_limit - session.new_bytes}, peer.lost_by_gap, peer.lost_by_timeout,
      session.congestion.is_policed());
}

}  // namespace

void WriteTop(SharedMemory& memory, const Driver& driver, NodeId first, std::span<char> out) {
  Page page(out);
  const SharedHead& head = memory.head();
  const Config& config = memory.config();
  const Endpoint& endpoint = memory.area(OwnerWord::Of(head.word.load()).area);
  const Counters c = endpoint.counters();
  if (first == 0) {
    page.Add("context %u node %u nodes %u program %d drives %s gone %d stopped %d\n",
             config.context, config.node, config.nodes, static_cast<int>(driver.program),
             driver.is_program ? "program" : "daemon", driver.is_gone, endpoint.paused());
    page.Add("daemon turns %llu seizures %llu rings %llu\n", Number{head.take_overs.load()},
             Number{head.seizures.load()}, Number{head.rings.load()});
    page.Add("datagrams in %llu out %llu\n", Number{c.datagrams_in}, Number{c.datagrams_out});
    page.Add("messages in %llu out %llu\n", Number{c.messages_in}, Number{c.messages_out});
    page.Add("memory in %llu out %llu\n", Number{head.near_in.load()},
             Number{head.near_out.load()});
    page.Add("twice sent %llu gap %llu timeout %llu spurious %llu probes %llu\n",
             Number{c.retransmitted}, Number{c.lost_by_gap}, Number{c.lost_by_timeout},
             Number{c.spurious}, Number{c.probes});
  }
  for (NodeId node = first; node < config.nodes; ++node) {
    if (endpoint.peer(node).state == PeerState::kUnknown) continue;
    if (!Describe(page, endpoint, node)) return page.AddLast(node);
  }
}

}  // namespace sekisho::pm
