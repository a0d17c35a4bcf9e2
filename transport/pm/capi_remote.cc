// SPDX-License-Identifier: Apache-2.0
// The C interface to remote memory: transport/pm/pm.h.
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "transport/pm/capi_context.h"
#include "transport/pm/little_endian.h"
#include "transport/pm/near_copy.h"

using sekisho::pm::Call;
using sekisho::pm::Errno;
using sekisho::pm::Load;
using sekisho::pm::NodeId;
using sekisho::pm::RegionName;
using sekisho::pm::SendPlace;
using sekisho::pm::Store;

namespace sekisho::pm {
namespace {

constexpr std::size_t kRoomForMessages = 64 * 1024;  // of a ring, which bulk leaves to the program

}  // namespace

bool ContextPort::Send(NodeId node, Bytes head, Bytes body) {
  const std::size_t size = head.size() + body.size();
  if (context_.Room(node, size + (body.empty() ? 0 : kRoomForMessages))) return false;
  return !context_.core().TrySend(node, 0, MessageKind::kRemote, head, body);
}

bool ContextPort::IsGone(NodeId node) {
  return context_.core().peer_state(node) == PeerState::kGone;
}

void ContextPort::Await(NodeId node, bool awaits) { context_.core().Await(node, awaits); }

std::uint32_t ContextPort::Session(NodeId node) { return context_.core().peer_session(node); }

bool ContextPort::MayBeNear(NodeId node) {
  return context_.core().peer_address(node).ip == context_.own.ip;
}

bool ContextPort::Copy(const NearPlace& from, std::uint64_t secret, MutableBytes to) {
  return CopyNear(from, secret, to);
}

std::uint64_t ContextPort::Random() {
  std::uint64_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

}  // namespace sekisho::pm

namespace {

// region (4), owner (2), zero (2), key (8), offset (8), length (8): the same on every machine.
void WriteHandle(const RegionName& name, pmHandle* handle) {
  Store(&handle->opaque[0], name.region | uint64_t{name.owner} << 32);
  Store(&handle->opaque[8], name.key);
  Store(&handle->opaque[16], name.offset);
  Store(&handle->opaque[24], name.length);
}

RegionName ReadHandle(const pmHandle* handle) {
  const uint64_t first = Load(&handle->opaque[0]);
  return {static_cast<NodeId>(first >> 32), static_cast<uint32_t>(first), Load(&handle->opaque[8]),
          Load(&handle->opaque[16]), Load(&handle->opaque[24])};
}

// `descriptor`: where its name goes, if the program wants one.
int Start(pmContext* context, bool is_read, int node, const pmHandle* remote, const pmHandle* local,
          size_t length, int* descriptor) {
  if (remote == nullptr || local == nullptr) return EINVAL;
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  const RegionName there = ReadHandle(remote), here = ReadHandle(local);
  if (node != there.owner) return EINVAL;
  const int place = descriptor != nullptr ? context->sends.Take() : -1;
  if (descriptor != nullptr && place < 0) return EBUSY;
  uint32_t number;
  const auto error = is_read ? context->remote.Read(there, here, length, number)
                             : context->remote.Write(there, here, length, number);
  if (error) {
    if (place >= 0) context->sends.Free(place);
    return error == std::errc::message_size ? EINVAL : Errno(error);
  }
  if (place >= 0) {
    SendPlace& send = *context->sends.Find(place);
    send.state = SendPlace::State::kOperation;
    send.operation = number;
    context->remote.Watch(number);
    *descriptor = place;
  }
  context->remote.Pump();
  return 0;
}

}  // namespace

int pmMLock(pmContext* context, int node, void* address, size_t length, pmHandle* handle) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  RegionName name;
  if (handle == nullptr) return EINVAL;
  // Who can change payloads could write to what is registered.
  if (!context->core().config().payload_tag) return ENOTSUP;
  if (const auto error = context->remote.Register(node, address, length, name)) {
    return error == std::errc::message_size ? EINVAL : Errno(error);
  }
  WriteHandle(name, handle);
  return 0;
}

int pmMUnlock(pmContext* context, pmHandle* handle) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  if (handle == nullptr) return EINVAL;
  const auto error = context->remote.Unregister(ReadHandle(handle));
  return error == std::errc::no_buffer_space ? EBUSY : Errno(error);
}

int pmSubHandle(const pmHandle* handle, size_t offset, size_t length, pmHandle* part) {
  if (handle == nullptr || part == nullptr) return EINVAL;
  RegionName name = ReadHandle(handle);
  if (offset > name.length || length > name.length - offset) return EINVAL;
  name.offset += offset;
  name.length = length;
  WriteHandle(name, part);
  return 0;
}

int pmWrite(pmContext* context, int node, const pmHandle* remote, const pmHandle* local,
            size_t length) {
  return Start(context, false, node, remote, local, length, nullptr);
}

int pmRead(pmContext* context, int node, const pmHandle* remote, const pmHandle* local,
           size_t length) {
  return Start(context, true, node, remote, local, length, nullptr);
}

int pmxWrite(pmContext* context, int node, const pmHandle* remote, const pmHandle* local,
             size_t length, int* descriptor) {
  if (descriptor == nullptr) return EINVAL;
  return Start(context, false, node, remote, local, length, descriptor);
}

int pmxRead(pmContext* context, int node, const pmHandle* remote, const pmHandle* local,
            size_t length, int* descriptor) {
  if (descriptor == nullptr) return EINVAL;
  return Start(context, true, node, remote, local, length, descriptor);
}
