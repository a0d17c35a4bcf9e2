// SPDX-License-Identifier: Apache-2.0
#include "common/admission.h"

namespace sekisho {

Admission::Arrival Admission::Arrive(const std::string& peer, Time now) {
  Arrival arrival;
  const auto known = peers_.find(peer);
  if (known != peers_.end() && known->second.open >= limits_.per_peer + limits_.per_peer_spare) {
    arrival.evicted = *known->second.unfinished.begin();  // there is one: not more than per_peer finish
  } else if (unfinished_.size() >= limits_.unfinished && !unfinished_.empty()) {
    arrival.evicted = *unfinished_.begin();
  }
  if (arrival.evicted) {
    Leave(*arrival.evicted);
  }

  const Id id = next_++;
  connections_[id] = {peer, now + limits_.handshake, false};
  Peer& entry = peers_[peer];
  ++entry.open;
  entry.unfinished.insert(id);
  unfinished_.insert(id);
  arrival.admitted = id;
  return arrival;
}

bool Admission::Finish(Id id) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end() || connection->second.is_finished) {
    return true;
  }
  Peer& peer = peers_[connection->second.peer];
  if (peer.open - peer.unfinished.size() >= limits_.per_peer) {
    return false;
  }
  connection->second.is_finished = true;
  peer.unfinished.erase(id);
  unfinished_.erase(id);
  return true;
}

void Admission::Leave(Id id) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end()) {
    return;
  }
  const auto peer = peers_.find(connection->second.peer);
  peer->second.unfinished.erase(id);
  if (--peer->second.open == 0) {
    peers_.erase(peer);
  }
  unfinished_.erase(id);
  connections_.erase(connection);
}

std::vector<Admission::Id> Admission::Expire(Time now) {
  std::vector<Id> expired;
  while (!unfinished_.empty() && connections_.at(*unfinished_.begin()).deadline <= now) {
    expired.push_back(*unfinished_.begin());
    Leave(expired.back());
  }
  return expired;
}

std::optional<Admission::Id> Admission::EvictOldest() {
  if (unfinished_.empty()) {
    return std::nullopt;
  }
  const Id oldest = *unfinished_.begin();
  Leave(oldest);
  return oldest;
}

std::optional<Admission::Time> Admission::NextDeadline() const {
  if (unfinished_.empty()) {
    return std::nullopt;
  }
  return connections_.at(*unfinished_.begin()).deadline;
}

}  // namespace sekisho
