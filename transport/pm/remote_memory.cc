// SPDX-License-Identifier: Apache-2.0
// Remote memory of one context.
#include "transport/pm/remote_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "transport/pm/errors.h"

namespace sekisho::pm {
namespace {

void CopyPieces(std::uint8_t* to, const Pieces& from) {
  if (!from.first.empty()) std::memcpy(to, from.first.data(), from.first.size());
  if (!from.second.empty()) {
    std::memcpy(to + from.first.size(), from.second.data(), from.second.size());
  }
}

std::uint64_t AddressOf(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

}  // namespace

std::error_code RemoteMemory::Init(NodeId own, std::uint16_t nodes, RemotePort& port) {
  own_ = own;
  nodes_ = nodes;
  port_ = &port;
  peers_.reset(new (std::nothrow) std::unique_ptr<PeerMemory>[nodes]);
  return peers_ ? std::error_code() : Error::kNoMemory;
}

RemoteMemory::PeerMemory* RemoteMemory::PeerOf(NodeId node) {
  if (!peers_[node]) peers_[node].reset(new (std::nothrow) PeerMemory);
  return peers_[node].get();
}

// Regions.

std::error_code RemoteMemory::Register(std::int32_t user, void* memory, std::uint64_t length,
                                       RegionName& name) {
  if (user < kEveryNode || user >= nodes_) return Error::kBadNode;
  if (memory == nullptr || length == 0 || length > kRemoteLengthMax) return Error::kTooLong;
  if (!regions_) regions_.reset(new (std::nothrow) Region[kRemoteRegions]);
  if (!regions_) return Error::kNoMemory;
  Region* const end = regions_.get() + kRemoteRegions;
  Region* const region =
      std::find_if(regions_.get(), end, [](const Region& one) { return one.memory == nullptr; });
  if (region == end) return Error::kNoMemory;
  *region = {static_cast<std::uint8_t*>(memory), length, port_->Random(), user, 0};
  name = {own_, static_cast<std::uint32_t>(region - regions_.get()), region->key, 0, length};
  return {};
}

std::error_code RemoteMemory::Unregister(const RegionName& name) {
  if (FindLocal(name, 0) == nullptr) return Error::kBadSequence;
  Region& region = regions_[name.region];
  if (region.pins > 0) return Error::kWouldBlock;
  region = {};
  return {};
}

// Where that part lies, if it is registered to the user.
std::uint8_t* RemoteMemory::Find(NodeId user, std::uint32_t region, std::uint64_t key,
                                 std::uint64_t offset, std::uint64_t length) {
  if (!regions_ || region >= kRemoteRegions) return nullptr;
  const Region& found = regions_[region];
  if (found.memory == nullptr || found.key != key) return nullptr;
  if (found.user != kEveryNode && found.user != user) return nullptr;
  if (offset > found.length || length > found.length - offset) return nullptr;
  return found.memory + offset;
}

// Ours may be used by us, whoever else may.
std::uint8_t* RemoteMemory::FindLocal(const RegionName& name, std::uint64_t length) {
  if (!regions_ || name.owner != own_ || name.region >= kRemoteRegions) return nullptr;
  const Region& found = regions_[name.region];
  if (found.memory == nullptr || found.key != name.key) return nullptr;
  if (name.offset > found.length || length > found.length - name.offset) return nullptr;
  return found.memory + name.offset;
}

// Our operations.

std::error_code RemoteMemory::Write(const RegionName& remote, const RegionName& local,
                                    std::uint64_t length, std::uint32_t& operation) {
  return Start(false, remote, local, length, operation);
}

std::error_code RemoteMemory::Read(const RegionName& remote, const RegionName& local,
                                   std::uint64_t length, std::uint32_t& operation) {
  return Start(true, remote, local, length, operation);
}

std::error_code RemoteMemory::Start(bool is_read, const RegionName& remote, const RegionName& local,
                                    std::uint64_t length, std::uint32_t& number) {
  if (remote.owner >= nodes_ || remote.owner == own_) return Error::kBadNode;
  std::uint8_t* const memory = FindLocal(local, length);
  if (length == 0 || length > remote.length || length > local.length || memory == nullptr) {
    return Error::kTooLong;
  }
  if (port_->IsGone(remote.owner)) return Error::kPeerGone;
  PeerMemory* const peer = PeerOf(remote.owner);
  if (!operations_) operations_.reset(new (std::nothrow) Operation[kRemoteOperations]);
  if (peer == nullptr || !operations_) return Error::kNoMemory;
  if (peer->operation_count == kOperationsPerPeer || operation_count_ == kRemoteOperations) {
    return Error::kWouldBlock;
  }
  Operation* const end = operations_.get() + kRemoteOperations;
  Operation* const place = std::find_if(operations_.get(), end, [](const Operation& one) {
    return one.state == Operation::State::kFree;
  });
  if (place == end) return Error::kWouldBlock;
  Operation& operation = *place;
  const std::uint32_t generation = operation.generation + 1;
  operation = {};
  operation.generation = generation;
  operation.is_read = is_read;
  operation.may_be_near = IsNear(remote.owner, length);
  operation.state = is_read                 ? Operation::State::kAsks
                    : operation.may_be_near ? Operation::State::kOffers
                                            : Operation::State::kSends;
  operation.node = remote.owner;
  // The first session of a peer is number 1, and what is sent before belongs to it.
  operation.session = std::max<std::uint32_t>(port_->Session(remote.owner), 1);
  operation.remote = remote;
  operation.local = memory;
  operation.local_region = local.region;
  operation.length = length;
  if (operation.may_be_near) {
    operation.token = is_read ? port_->Random() : NearProof(remote.key, own_);
  }
  ++regions_[local.region].pins;
  if (++peer->operation_count == 1) port_->Await(remote.owner, true);
  ++operation_count_;
  number = NumberOf(operation);
  return {};
}

std::uint32_t RemoteMemory::NumberOf(const Operation& operation) const {
  return static_cast<std::uint32_t>(&operation - operations_.get()) +
         operation.generation * kRemoteOperations;
}

RemoteMemory::Operation* RemoteMemory::Named(std::uint32_t number) {
  if (!operations_) return nullptr;
  Operation& operation = operations_[number % kRemoteOperations];
  const bool is_it = operation.state != Operation::State::kFree && NumberOf(operation) == number;
  return is_it ? &operation : nullptr;
}

RemoteMemory::Operation* RemoteMemory::Named(NodeId node, std::uint32_t number) {
  Operation* const operation = Named(number);
  return operation != nullptr && operation->node == node ? operation : nullptr;
}

void RemoteMemory::Watch(std::uint32_t operation) {
  if (Operation* const found = Named(operation)) found->watched = true;
}

std::error_code RemoteMemory::Result(std::uint32_t operation) {
  const Operation* const found = Named(operation);
  if (found == nullptr || !found->watched) return Error::kBadSequence;
  return found->state == Operation::State::kOver ? found->result : Error::kWouldBlock;
}

void RemoteMemory::Forget(std::uint32_t operation) {
  Operation* const found = Named(operation);
  if (found == nullptr || !found->watched) return;
  found->watched = false;
  if (found->state == Operation::State::kOver) found->state = Operation::State::kFree;
}

bool RemoteMemory::IsNear(NodeId node, std::uint64_t length) {
  PeerMemory* const peer = PeerOf(node);
  return peer != nullptr && !peer->is_far && length >= kNearLength && port_->MayBeNear(node);
}

void RemoteMemory::End(Operation& operation, std::error_code error) {
  --regions_[operation.local_region].pins;
  if (--peers_[operation.node]->operation_count == 0) port_->Await(operation.node, false);
  --operation_count_;
  operation.state = operation.watched ? Operation::State::kOver : Operation::State::kFree;
  operation.result = error;
  if (error && !failure_ && !operation.watched) failure_ = error;
}

std::error_code RemoteMemory::TakeFailure() {
  const std::error_code failure = failure_;
  failure_ = {};
  return failure;
}

void RemoteMemory::PumpOperation(Operation& operation) {
  using State = Operation::State;
  if (operation.state == State::kFree || operation.state == State::kOver) return;
  if (port_->IsGone(operation.node) || port_->Session(operation.node) > operation.session) {
    return End(operation, Error::kPeerGone);
  }
  port_->Await(operation.node, true);  // again, if an older state was restored meanwhile
  RemoteMessage message;
  message.operation = NumberOf(operation);
  message.region = operation.remote.region;
  message.key = operation.remote.key;
  message.offset = operation.remote.offset;
  message.length = operation.length;
  switch (operation.state) {
    case State::kFree:
    case State::kOver:
    case State::kWaits:
      return;
    case State::kSends:
      message.what = RemoteWhat::kWrite;
      while (operation.done < operation.length) {
        message.offset = operation.remote.offset + operation.done;
        message.length = std::min<std::uint64_t>(kRemoteChunk, operation.length - operation.done);
        message.last = operation.done + message.length == operation.length;
        const Bytes body(operation.local + operation.done, message.length);
        if (!port_->Send(operation.node, WriteRemoteHead(message), body)) return;
        operation.done += message.length;
      }
      operation.offered = false;
      operation.state = State::kWaits;
      return;
    case State::kOffers:
      message.what = RemoteWhat::kOffer;
      message.place = {port_->Process(), AddressOf(operation.local), AddressOf(&operation.token)};
      if (!port_->Send(operation.node, WriteRemoteHead(message), {})) return;
      operation.offered = true;
      operation.state = State::kWaits;
      return;
    case State::kAsks:
      message.what = RemoteWhat::kRead;
      message.near = operation.may_be_near;
      message.token = operation.may_be_near ? operation.token : 0;
      if (!port_->Send(operation.node, WriteRemoteHead(message), {})) return;
      operation.state = State::kWaits;
      return;
    case State::kThanks:
      message.what = RemoteWhat::kGot;
      if (!port_->Send(operation.node, WriteRemoteHead(message), {})) return;
      return End(operation, {});
  }
}

void RemoteMemory::CopyNear(Operation& operation, const NearPlace& place) {
  PeerMemory& peer = *peers_[operation.node];
  if (!peer.is_far && port_->Copy(place, operation.token, {operation.local, operation.length})) {
    ++near_copies_;
    operation.state = Operation::State::kThanks;
    return;
  }
  peer.is_far = true;
  operation.may_be_near = false;
  operation.state = Operation::State::kAsks;
}

void RemoteMemory::OnData(Operation& operation, const RemoteMessage& message, const Pieces& body) {
  // In order and to its end, or the peer makes it up.
  const bool fits = message.offset == operation.done &&
                    body.size() <= operation.length - operation.done &&
                    message.last == (operation.done + body.size() == operation.length);
  if (!fits) {
    ++malformed_;
    return End(operation, Error::kRefused);
  }
  CopyPieces(operation.local + operation.done, body);
  operation.done += body.size();
  if (message.last) End(operation, {});
}

// What peers want of us.

RemoteMemory::Service* RemoteMemory::NewService(NodeId node, std::uint32_t operation) {
  PeerMemory* const peer = PeerOf(node);
  if (peer == nullptr) return nullptr;
  // What an older start of it wanted is of no use to this one.
  if (const std::uint32_t session = port_->Session(node); peer->session != session) {
    peer->session = session;
    peer->services = {};
    peer->service_count = 0;
  }
  // Nobody of ours asks for more at once.
  if (peer->service_count == kOperationsPerPeer) {
    ++malformed_;
    return nullptr;
  }
  ++peer->service_count;
  if (!peer->is_serving) {
    peer->is_serving = true;
    peer->next_serving = serving_;
    serving_ = node;
  }
  Service& service =
      *std::find_if(peer->services.begin(), peer->services.end(),
                    [](const Service& one) { return one.kind == Service::Kind::kNone; });
  service = {};
  service.operation = operation;
  return &service;
}

void RemoteMemory::Free(PeerMemory& peer, Service& service) {
  service = {};
  --peer.service_count;
}

void RemoteMemory::Answer(NodeId node, const RemoteMessage& to, RemoteWhat what) {
  Service* const service = NewService(node, to.operation);
  if (service == nullptr) return;
  service->kind = Service::Kind::kAnswer;
  service->answer = what;
}

void RemoteMemory::OnWrite(NodeId node, const RemoteMessage& message, const Pieces& body) {
  std::uint8_t* const to = Find(node, message.region, message.key, message.offset, message.length);
  if (to != nullptr) CopyPieces(to, body);
  // What is wrong with any part of an operation is wrong with the last.
  if (message.last) Answer(node, message, to != nullptr ? RemoteWhat::kDone : RemoteWhat::kRefused);
}

void RemoteMemory::OnOffer(NodeId node, const RemoteMessage& message) {
  std::uint8_t* const to = Find(node, message.region, message.key, message.offset, message.length);
  if (to == nullptr) return Answer(node, message, RemoteWhat::kRefused);
  PeerMemory* const peer = PeerOf(node);
  if (IsNear(node, message.length) &&
      port_->Copy(message.place, NearProof(message.key, node), {to, message.length})) {
    ++near_copies_;
    return Answer(node, message, RemoteWhat::kDone);
  }
  // Once and no more: who names a false place does not get to search for a true one.
  if (peer != nullptr) peer->is_far = true;
  Answer(node, message, RemoteWhat::kResend);
}

void RemoteMemory::OnRead(NodeId node, const RemoteMessage& message) {
  PeerMemory* const peer = PeerOf(node);
  if (peer == nullptr) return;
  // Asked again, because what was lent could not be copied?
  const auto lent =
      std::find_if(peer->services.begin(), peer->services.end(), [&message](const Service& one) {
        return one.kind == Service::Kind::kLent && one.operation == message.operation;
      });
  if (lent != peer->services.end()) {
    peer->is_far = true;
    Free(*peer, *lent);
  }
  if (Find(node, message.region, message.key, message.offset, message.length) == nullptr) {
    return Answer(node, message, RemoteWhat::kRefused);
  }
  const bool is_near = message.near && IsNear(node, message.length);
  Service* const service = NewService(node, message.operation);
  if (service == nullptr) return;
  service->kind = is_near ? Service::Kind::kOfferNear : Service::Kind::kRead;
  service->region = message.region;
  service->key = message.key;
  service->offset = message.offset;
  service->length = message.length;
  service->token = is_near ? message.token : 0;
}

void RemoteMemory::OnGot(NodeId node, const RemoteMessage& message) {
  PeerMemory* const peer = PeerOf(node);
  if (peer == nullptr) return;
  for (Service& service : peer->services) {
    if (service.kind == Service::Kind::kLent && service.operation == message.operation) {
      return Free(*peer, service);
    }
  }
}

// False: no room.
bool RemoteMemory::PumpService(NodeId node, PeerMemory& peer, Service& service) {
  RemoteMessage message;
  message.operation = service.operation;
  if (service.kind == Service::Kind::kAnswer) {
    message.what = service.answer;
    if (!port_->Send(node, WriteRemoteHead(message), {})) return false;
    Free(peer, service);
    return true;
  }
  if (service.kind != Service::Kind::kRead && service.kind != Service::Kind::kOfferNear) {
    return true;
  }
  // It may have been unregistered since.
  const std::uint8_t* const from =
      Find(node, service.region, service.key, service.offset, service.length);
  if (from == nullptr) {
    service.kind = Service::Kind::kAnswer;
    service.answer = RemoteWhat::kRefused;
    return PumpService(node, peer, service);
  }
  if (service.kind == Service::Kind::kOfferNear) {
    message.what = RemoteWhat::kNear;
    message.place = {port_->Process(), AddressOf(from), AddressOf(&service.token)};
    if (!port_->Send(node, WriteRemoteHead(message), {})) return false;
    service.kind = Service::Kind::kLent;
    return true;
  }
  message.what = RemoteWhat::kData;
  while (service.done < service.length) {
    message.offset = service.done;
    message.length = std::min<std::uint64_t>(kRemoteChunk, service.length - service.done);
    message.last = service.done + message.length == service.length;
    const Bytes body(from + service.done, message.length);
    if (!port_->Send(node, WriteRemoteHead(message), body)) return false;
    service.done += message.length;
  }
  Free(peer, service);
  return true;
}

void RemoteMemory::PumpServices() {
  std::uint32_t* link = &serving_;
  while (*link != kNobody) {
    const auto node = static_cast<NodeId>(*link);
    PeerMemory& peer = *peers_[node];
    const bool is_lost = port_->IsGone(node) || port_->Session(node) != peer.session;
    for (Service& service : peer.services) {
      if (service.kind == Service::Kind::kNone) continue;
      if (is_lost) {
        Free(peer, service);
      } else if (!PumpService(node, peer, service)) {
        break;
      }
    }
    if (peer.service_count > 0) {
      link = &peer.next_serving;
      continue;
    }
    peer.is_serving = false;
    *link = peer.next_serving;
  }
}

void RemoteMemory::OnMessage(NodeId node, const Pieces& bytes) {
  RemoteMessage message;
  Pieces body;
  if (node >= nodes_ || node == own_ || !ParseRemoteMessage(bytes, message, body)) {
    ++malformed_;
    return;
  }
  switch (message.what) {
    case RemoteWhat::kWrite:
      return OnWrite(node, message, body);
    case RemoteWhat::kOffer:
      return OnOffer(node, message);
    case RemoteWhat::kRead:
      return OnRead(node, message);
    case RemoteWhat::kGot:
      return OnGot(node, message);
    default:
      break;
  }
  // The rest answers an operation of ours, which may be over.
  Operation* const operation = Named(node, message.operation);
  const bool waits = operation != nullptr && operation->state == Operation::State::kWaits;
  if (!waits) return;
  if (message.what == RemoteWhat::kRefused) return End(*operation, Error::kRefused);
  if (operation->is_read) {
    if (message.what == RemoteWhat::kData) return OnData(*operation, message, body);
    if (message.what == RemoteWhat::kNear && operation->may_be_near) {
      return CopyNear(*operation, message.place);
    }
  } else {
    if (message.what == RemoteWhat::kDone) return End(*operation, {});
    if (message.what == RemoteWhat::kResend && operation->offered) {
      peers_[node]->is_far = true;
      operation->state = Operation::State::kSends;
      return;
    }
  }
  ++malformed_;
}

void RemoteMemory::Pump() {
  if (operation_count_ > 0) {
    for (std::uint32_t i = 0; i < kRemoteOperations; ++i) PumpOperation(operations_[i]);
  }
  if (serving_ != kNobody) PumpServices();
}

}  // namespace sekisho::pm
