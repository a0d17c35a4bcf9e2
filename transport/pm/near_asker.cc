// SPDX-License-Identifier: Apache-2.0
// Asks the daemon for rings.
#include "transport/pm/near_asker.h"

#include <errno.h>

#include <algorithm>

#include "transport/pm/unix_message.h"

namespace sekisho::pm {
namespace {

constexpr Nanos kEvery = 5 * kMillisecond;
constexpr Nanos kWhileAsking = 200 * kMicrosecond;
constexpr Nanos kPatience = kSecond;
constexpr Nanos kFirstPause = 100 * kMillisecond;
constexpr Nanos kLongestPause = kSecond;
constexpr NodeId kNodesAtOnce = 64;

}  // namespace

void NearAsker::Forget() {
  if (connection_ >= 0) close(connection_);
  connection_ = -1;
}

// Whoever was refused, or does not come, is asked for again, but ever more seldom: the daemon may
// have been killed and with it what it had for him.
bool NearAsker::MayAsk(NodeId node, std::uint32_t session, Nanos now) {
  Try* oldest = &tries_[0];
  for (Try& known : tries_) {
    if (known.pause > 0 && known.node == node) {
      const bool anew = known.session != session || now - known.last > 4 * known.pause;
      if (!anew && now - known.last < known.pause) return false;
      known.pause = anew ? kFirstPause : std::min(2 * known.pause, kLongestPause);
      known.session = session;
      known.last = now;
      return true;
    }
    if (known.last < oldest->last) oldest = &known;
  }
  if (oldest->pause > 0 && now - oldest->last < oldest->pause) return false;
  *oldest = {node, session, now, kFirstPause};
  return true;
}

void NearAsker::Tend(const char* daemon, int memory, const Address& own, const Endpoint& endpoint,
                     NearLinks& links, Nanos now, bool may_ask) {
  if (now < next_) return;
  next_ = now + kEvery;
  links.DropStale(endpoint);
  if (connection_ >= 0) return TakeAnswer(endpoint, links, now);
  if (!may_ask || !links.HasRoom()) return;
  const Config& config = endpoint.config();
  for (NodeId i = 0; i < std::min(config.nodes, kNodesAtOnce); ++i) {
    looked_at_ = static_cast<NodeId>((looked_at_ + 1) % config.nodes);
    const Peer& peer = endpoint.peer(looked_at_);
    if (looked_at_ == config.node || peer.state != PeerState::kUp || peer.address.ip != own.ip ||
        links.IsJoined(looked_at_) || !MayAsk(looked_at_, peer.session, now)) {
      continue;
    }
    session_ = peer.session;
    return Ask(daemon, memory, config, looked_at_, now);
  }
}

void NearAsker::Ask(const char* daemon, int memory, const Config& config, NodeId node, Nanos now) {
  connection_ = ConnectDaemon(daemon, false);
  if (connection_ < 0) return;
  AskMessage ask;
  ask.ask = Ask::kNear;
  ask.config.context = config.context;
  ask.config.node = config.node;
  ask.peer = node;
  if (SendMessage(connection_, BytesOf(ask), std::span(&memory, 1)) != 0) return Forget();
  node_ = node;
  asked_ = now;
  next_ = now + kWhileAsking;
}

void NearAsker::TakeAnswer(const Endpoint& endpoint, NearLinks& links, Nanos now) {
  next_ = now + kWhileAsking;
  AnswerMessage answer;
  errno = 0;
  const Received received = ReceiveMessage(connection_, RoomFor(answer));
  if (received.size == 0 && errno == EAGAIN && now - asked_ < kPatience) return;
  Forget();
  next_ = now + kEvery;
  const Peer& peer = endpoint.peer(node_);
  if (received.fd_count == 1 && received.size == sizeof answer && answer.error == 0 &&
      peer.session == session_) {
    // Without it datagrams go on as before.
    (void)links.Join(endpoint.config().node, node_, peer.address, session_, received.fds[0]);
  }
  for (std::size_t i = 0; i < received.fd_count; ++i) close(received.fds[i]);
}

}  // namespace sekisho::pm
