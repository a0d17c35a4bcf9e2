// SPDX-License-Identifier: Apache-2.0
// The messages that a program holds: taken from their rings and not given back yet.
#include <algorithm>

#include "transport/pm/context.h"

namespace sekisho::pm {
namespace {

constexpr std::uint32_t kNotedPart = 8;  // of a ring: less need not be told a sender at once

}  // namespace

bool Context::Receive(Message& message) {
  if (!HasMessage() || held_count_ == kHeldMax) return false;
  for (;;) {
    Endpoint& endpoint = Take();
    Settle(endpoint);
    const bool any = !endpoint.paused() && endpoint.Receive(message);
    if (held_back_ > 0) Flush(endpoint, Wire::Now());
    const std::uint32_t session = any ? endpoint.peer_session(message.source) : 0;
    if (Give()) {
      if (any) {
        held_[held_count_++] = {message.source, message.channel, false, session, message.end};
      }
      return any;
    }
    Restore();
  }
}

// After the keeper went on without us: what we hold is what we know, not what it found.
void Context::Restore() {
  do {
    Endpoint& endpoint = Take();
    Settle(endpoint);
    endpoint.DropOpen();
    for (std::size_t i = 0; i < held_count_; ++i) {
      endpoint.Hold(held_[i].node, held_[i].channel, held_[i].end);
    }
  } while (!Give());
}

// Without the word, most often: the next one who takes it reads the note.  Not in a job that stops,
// for it is saved as it is then.
bool Context::Release(WhenStopped when_stopped, const Message& message) {
  for (std::size_t i = 0; i < held_count_; ++i) {
    Held& held = held_[i];
    held.released = held.released || (held.node == message.source &&
                                      held.channel == message.channel && held.end == message.end);
  }
  noted_bytes_ += message.bytes.size();
  const bool must_tell = noted_bytes_ >= config().receive_ring / kNotedPart ||
                         head().releases.count() - settled_ >= ReleaseNotes::kNotes - 1;
  if (!must_tell && !stops_ && !IsStopped()) {
    NoteReleased(message.source, message.channel);
    return true;
  }
  Endpoint* const endpoint = TakeRunning(when_stopped);
  if (endpoint == nullptr) return false;
  NoteReleased(message.source, message.channel);
  Settle(*endpoint);
  Flush(*endpoint, Wire::Now());
  if (!Give()) Restore();
  return true;
}

// A ring is given back from its beginning on: up to the first that is still held.
void Context::NoteReleased(NodeId node, ChannelId channel) {
  const auto end = held_.begin() + static_cast<std::ptrdiff_t>(held_count_);
  const Held* last = nullptr;
  Held noted;
  bool keeps = false;
  const auto left = std::remove_if(held_.begin(), end, [&](const Held& held) {
    if (held.node != node || held.channel != channel) return false;
    keeps = keeps || !held.released;
    if (!keeps) last = &(noted = held);
    return !keeps;
  });
  held_count_ = static_cast<std::size_t>(left - held_.begin());
  if (last != nullptr) head().releases.Add(node, channel, last->session, last->end);
}

void Context::Settle(Endpoint& endpoint) {
  settling_ = settled_;
  if (!HasNotes() || endpoint.paused()) return;
  settling_ = head().releases.Apply(endpoint, settled_);
}

}  // namespace sekisho::pm
