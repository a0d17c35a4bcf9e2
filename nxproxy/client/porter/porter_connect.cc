// SPDX-License-Identifier: Apache-2.0
// The porter's answer to a program that wants to connect: docs/protocol/11-nxproxy-shim.md, "connect".
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nxproxy/client/porter/porter.h"
#include "nxproxy/client/porter/sockets.h"
#include "nxproxy/client/rules.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kAskAgainMs = 250;

}  // namespace

void Porter::Connect(const std::shared_ptr<Asker>& asker, size_t first, size_t tried) {
  if (tried == gates_.size()) {
    records_.Connects(asker->request().remote, TakenWay::kDirect);
    asker->Pass();
    return;
  }
  const auto is_up = [](const auto& gate) { return gate->has_been_up() && gate->session().is_up(); };
  if (unreached_ != nullptr && std::none_of(gates_.begin(), gates_.end(), is_up)) {
    // Without the relay's word another site's address looks like one of ours.  It comes back, or the command ends.
    waiting_.push_back([this, asker, first] { Connect(asker, first, 0); });
    return;
  }
  Gate& gate = *gates_[(first + tried) % gates_.size()];
  if (!gate.has_been_up()) {
    Connect(asker, first, tried + 1);
    return;
  }
  gate.ways().Find(asker->request().remote, [this, asker, &gate, first, tried](const Way& way) {
    if (way.is_unknown && loop_.now_ms() < others_back_ms_) {
      loop_.After(kAskAgainMs, [this, asker, first] { Connect(asker, first, 0); });
    } else if (way.is_neighbour) {
      Connect(asker, first, gates_.size());  // no other relay knows better
    } else if (way.kind == Way::Kind::kDirect || (way.is_unknown && tried + 1 < gates_.size())) {
      Connect(asker, first, tried + 1);
    } else {
      Dial(asker, gate, way);
    }
  });
}

void Porter::Dial(const std::shared_ptr<Asker>& asker, Gate& gate, const Way& way) {
  const LocalRequest& request = asker->request();
  const std::string destination = wire::ToText(request.remote);
  LocalReply reply;
  if (way.kind == Way::Kind::kRefused) {
    SayOnce("connection to " + destination + " refused: " + ToText(way.refusal));
    OnFailed(destination, ToText(way.refusal));
    asker->Refuse(wire::Info(way.refusal.code).error, ToText(way.refusal));
    return;
  }
  if (encryption_ != nullptr && way.kind == Way::Kind::kRelay && !way.is_encrypted) {
    SayOnce("connection to " + destination + " refused: " + kNotEncrypted);
    asker->Refuse(EACCES, kNotEncrypted);
    return;
  }
  if (unreached_ != nullptr && way.kind == Way::Kind::kRelay && !way.label.empty()) {
    unreached_->OnDialled(destination, way.label);
  }
  if (way.is_encrypted && encryption_ == nullptr && !StartEncryption()) {
    asker->Refuse(EACCES, "no encryption");
    return;
  }
  // Where to dial in plain text, of all places, is not for the relay to say.
  if (encryption_ != nullptr) {
    DialEncrypted(gate, way, request, reply);
  } else if (way.kind == Way::Kind::kInside) {
    records_.Connects(request.remote, TakenWay::kDirect);
    reply.answer = LocalAnswer::kDial;
    reply.address = way.inside;
  } else if (reversal_ != nullptr && way.is_ours && (request.flags & kIsReplaceable) != 0) {
    DialReversed(asker, gate, way);
    return;
  } else {
    DialPlain(gate, way, request, reply);
  }
  asker->Answer(reply);
}

// Ranks connect once, so that the second time is too late: where their user says that they can be
// reached the first connection waits for the trial.
void Porter::DialReversed(const std::shared_ptr<Asker>& asker, Gate& gate, const Way& way) {
  const bool waits = unreached_ != nullptr && plan_.is_inviting.value_or(false);
  reversal_->Try(gate.session(), way, waits, [this, asker, &gate, way](bool does_work) {
    if (does_work) {
      Invite(asker, gate, way);
      return;
    }
    LocalReply reply;
    DialPlain(gate, way, asker->request(), reply);
    asker->Answer(reply);
  });
}

void Porter::Invite(const std::shared_ptr<Asker>& asker, Gate& gate, const Way& way) {
  reversal_->Invite(gate.session(), way, [this, asker, &gate, way](int fd) {
    LocalReply reply;
    if (fd < 0) {
      DialPlain(gate, way, asker->request(), reply);
      asker->Answer(reply);
      return;
    }
    records_.Connects(asker->request().remote, TakenWay::kReversed);
    Remember({LocalOf(fd), RemoteOf(fd)}, {asker->request().remote, {}, false, 0});
    reply.answer = LocalAnswer::kStream;
    asker->Answer(reply, fd);
  });
}

// As whom the far end shall see the program: as it publishes itself.
wire::Address Porter::SourceOf(const Way& way, const LocalRequest& request) {
  if (!way.is_ours) {
    return {};
  }
  wire::Address from = request.local;
  if (IsWildcard(from)) {
    from = Interfaces::Read().Main();
    from.port = request.local.port;
  }
  return from;
}

void Porter::DialPlain(Gate& gate, const Way& way, const LocalRequest& request,
                       LocalReply& reply) {
  const std::string preface = gate.Mint(way.target, SourceOf(way, request), request.remote);
  if (!preface.empty() && preface.size() <= sizeof reply.preface) {
    records_.Connects(request.remote, TakenWay::kRelayed);
    reply.answer = LocalAnswer::kDial;
    reply.address = gate.dial_address();
    reply.preface_bytes = static_cast<uint32_t>(preface.size());
    std::memcpy(reply.preface, preface.data(), preface.size());
  }
}

void Porter::DialEncrypted(Gate& gate, const Way& way, const LocalRequest& request,
                           LocalReply& reply) {
  const auto dial = [&gate, target = way.target, from = SourceOf(way, request),
                     destination = request.remote] {
    const std::string preface = gate.Mint(target, from, destination);
    return preface.empty() ? -1 : DialWith(gate.dial_address(), false, preface);
  };
  const std::string cookie = encryption_->Expect({wire::ToText(request.remote), dial});
  if (!cookie.empty()) {
    records_.Connects(request.remote, TakenWay::kRelayed);
  }
  reply.answer = cookie.empty() ? LocalAnswer::kRefused : LocalAnswer::kDial;
  reply.error = EAGAIN;
  reply.address = encryption_->door();
  reply.preface_bytes = static_cast<uint32_t>(cookie.size());
  std::memcpy(reply.preface, cookie.data(), cookie.size());
}

}  // namespace sekisho::nxproxy::client
