// SPDX-License-Identifier: Apache-2.0
// Remote memory of one context: regions that are registered to peers, operations on theirs, and
// what is owed to them.  docs/protocol/9-pm.md, "Remote memory".  No clock, socket or system call
// of its own; memory is taken when a peer is first dealt with.
#pragma once

#include <array>
#include <memory>
#include <system_error>

#include "transport/pm/remote_message.h"

namespace sekisho::pm {

inline constexpr std::uint32_t kRemoteRegions = 1024;
inline constexpr std::uint32_t kRemoteOperations = 256;
inline constexpr std::uint32_t kOperationsPerPeer = 16;
inline constexpr std::uint64_t kRemoteLengthMax = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kNearLength = 4096;  // less is not worth an offer

// Who a region is registered to, if not to one node.
inline constexpr std::int32_t kEveryNode = -1;

// A part of a region, as its owner and its users name it.
struct RegionName {
  NodeId owner = 0;
  std::uint32_t region = 0;
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

// What remote memory needs of the context.
class RemotePort {
 public:
  virtual ~RemotePort() = default;
  // Sends head and body in one message; false: no room now.
  virtual bool Send(NodeId node, Bytes head, Bytes body) = 0;
  virtual bool IsGone(NodeId node) = 0;
  // Whether an answer of the node is waited for.
  virtual void Await(NodeId node, bool awaits) = 0;
  // Grows when the node was started anew.
  virtual std::uint32_t Session(NodeId node) = 0;
  // The node's address is one of this host.
  virtual bool MayBeNear(NodeId node) = 0;
  // Copies from another process of this host, if the secret lies where it says.
  virtual bool Copy(const NearPlace& from, std::uint64_t secret, MutableBytes to) = 0;
  virtual std::uint32_t Process() = 0;
  virtual std::uint64_t Random() = 0;
};

class RemoteMemory {
 public:
  RemoteMemory() = default;
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  std::error_code Init(NodeId own, std::uint16_t nodes, RemotePort& port);

  // `user`: the node that may use it, kEveryNode, or the own one: nobody else.
  std::error_code Register(std::int32_t user, void* memory, std::uint64_t length, RegionName& name);
  // kWouldBlock: own operations still use it.  What peers have under way there is refused.
  std::error_code Unregister(const RegionName& name);

  // Writes to `remote` what lies in `local`, a part of a region of ours; reads the other way round.
  // kWouldBlock: too many under way.  `operation` names it until it is over.
  std::error_code Write(const RegionName& remote, const RegionName& local, std::uint64_t length,
                        std::uint32_t& operation);
  std::error_code Read(const RegionName& remote, const RegionName& local, std::uint64_t length,
                       std::uint32_t& operation);

  // The caller asks for this one itself: it keeps its place until it is forgotten, and is not part
  // of TakeFailure and has_operations when it is over.
  void Watch(std::uint32_t operation);
  // kWouldBlock: not over yet.  kBadSequence: not watched.
  std::error_code Result(std::uint32_t operation);
  void Forget(std::uint32_t operation);

  // A message of this kind.  Whatever it says, it is dealt with.
  void OnMessage(NodeId node, const Pieces& bytes);
  // Sends what may leave, gives up what was lost with its peer.
  void Pump();

  bool has_operations() const { return operation_count_ > 0; }
  // Anything is under way, here or for a peer.
  bool is_busy() const { return operation_count_ > 0 || serving_ != kNobody; }
  // Messages about it may come.
  bool is_used() const { return regions_ != nullptr || serving_ != kNobody; }
  // Messages that no node of ours sends.
  std::uint64_t malformed() const { return malformed_; }
  std::uint64_t near_copies() const { return near_copies_; }
  // Why the first of those failed that did since the last question: kPeerGone, kRefused.
  std::error_code TakeFailure();

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  struct Region {
    std::uint8_t* memory = nullptr;  // null: free
    std::uint64_t length = 0;
    std::uint64_t key = 0;
    std::int32_t user = kEveryNode;
    std::uint32_t pins = 0;  // own operations
  };

  // One of ours.
  struct Operation {
    enum class State : std::uint8_t {
      kFree,
      kSends,   // has to say kWrite, until all bytes are sent
      kOffers,  // kOffer
      kAsks,    // kRead
      kThanks,  // kGot; then it is over
      kWaits,   // for the peer
      kOver,    // and watched
    };
    State state = State::kFree;
    bool is_read = false;
    bool offered = false;  // kWaits: for the answer to kOffer
    bool may_be_near = false;
    bool watched = false;
    std::error_code result;
    NodeId node = 0;
    std::uint32_t session = 0;
    std::uint32_t generation = 0;
    RegionName remote;
    std::uint8_t* local = nullptr;
    std::uint32_t local_region = 0;
    std::uint64_t length = 0;
    std::uint64_t done = 0;
    std::uint64_t token = 0;
  };

  // What a peer wants of us.
  struct Service {
    enum class Kind : std::uint8_t { kNone, kAnswer, kRead, kOfferNear, kLent };
    Kind kind = Kind::kNone;
    RemoteWhat answer = RemoteWhat::kDone;
    std::uint32_t operation = 0;
    std::uint32_t region = 0;
    std::uint64_t key = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t done = 0;
    std::uint64_t token = 0;  // lies here for the peer to find
  };

  struct PeerMemory {
    std::array<Service, kOperationsPerPeer> services;
    std::uint32_t service_count = 0;
    std::uint32_t operation_count = 0;
    std::uint32_t session = 0;
    std::uint32_t next_serving = kNobody;
    bool is_serving = false;
    bool is_far = false;  // copying was tried, or is refused
  };

  PeerMemory* PeerOf(NodeId node);
  std::uint8_t* Find(NodeId user, std::uint32_t region, std::uint64_t key, std::uint64_t offset,
                     std::uint64_t length);
  std::uint8_t* FindLocal(const RegionName& name, std::uint64_t length);
  std::error_code Start(bool is_read, const RegionName& remote, const RegionName& local,
                        std::uint64_t length, std::uint32_t& number);
  Operation* Named(std::uint32_t number);
  Operation* Named(NodeId node, std::uint32_t number);
  std::uint32_t NumberOf(const Operation& operation) const;
  bool IsNear(NodeId node, std::uint64_t length);
  void CopyNear(Operation& operation, const NearPlace& place);
  void End(Operation& operation, std::error_code error);
  void PumpOperation(Operation& operation);

  void Answer(NodeId node, const RemoteMessage& to, RemoteWhat what);
  Service* NewService(NodeId node, std::uint32_t operation);
  void OnWrite(NodeId node, const RemoteMessage& message, const Pieces& body);
  void OnOffer(NodeId node, const RemoteMessage& message);
  void OnRead(NodeId node, const RemoteMessage& message);
  void OnGot(NodeId node, const RemoteMessage& message);
  void OnData(Operation& operation, const RemoteMessage& message, const Pieces& body);
  void Free(PeerMemory& peer, Service& service);
  void PumpServices();
  bool PumpService(NodeId node, PeerMemory& peer, Service& service);

  RemotePort* port_ = nullptr;
  NodeId own_ = 0;
  std::uint16_t nodes_ = 0;
  std::unique_ptr<std::unique_ptr<PeerMemory>[]> peers_;
  std::unique_ptr<Region[]> regions_;
  std::unique_ptr<Operation[]> operations_;
  std::uint32_t operation_count_ = 0;
  std::uint32_t serving_ = kNobody;  // first of a list
  std::uint64_t malformed_ = 0, near_copies_ = 0;
  std::error_code failure_;
};

}  // namespace sekisho::pm
