// SPDX-License-Identifier: Apache-2.0
// The C interface's messages: transport/pm/pm.h.  The second generation's one buffer of each kind
// is a descriptor that the context keeps for itself.
#include <errno.h>
#include <string.h>

#include <new>

#include "transport/pm/capi_context.h"

using sekisho::pm::Bytes;
using sekisho::pm::Call;
using sekisho::pm::Errno;
using sekisho::pm::Error;
using sekisho::pm::kMessageHeadSize;
using sekisho::pm::Message;
using sekisho::pm::MessageKind;
using sekisho::pm::NodeId;
using sekisho::pm::Padded;
using sekisho::pm::PeerState;
using sekisho::pm::ReceivePlace;
using sekisho::pm::SendPlace;

namespace {

// Gives it back, or does so later if the job is stopped.
void Drop(pmContext& context, int number) {
  ReceivePlace& place = *context.receives.Find(number);
  if (context.core().TryRelease(place.message)) {
    context.receives.Free(number);
  } else {
    place.state = ReceivePlace::State::kReleased;
    ++context.to_release;
  }
}

bool DropReleased(pmContext& context) {
  context.receives.ForEach([&context](ReceivePlace& place, int number) {
    if (place.state != ReceivePlace::State::kReleased) return;
    if (!context.core().TryRelease(place.message)) return;
    context.receives.Free(number);
    --context.to_release;
  });
  return context.to_release == 0;
}

// The first message of the queue; 0 or errno.
int Next(pmContext* context, int& number) {
  if (!context->Look()) {
    context->core().Progress();
    if (!context->Look()) {
      for (int i = 0; i < context->nodes; ++i) {
        const bool gone = context->core().peer_state(static_cast<NodeId>(i)) == PeerState::kGone;
        if (gone == context->told_gone[i]) continue;
        context->told_gone[i] = gone;
        if (gone) return EPIPE;
      }
      const int free = context->receives.Take();
      if (free < 0 && context->queue_count == 0) return EBUSY;
      if (free >= 0) context->receives.Free(free);
      return ENOBUFS;
    }
  }
  number = context->queue[context->queue_first];
  return 0;
}

// Takes what Next found.
int Open(pmContext* context, void** buffer, size_t* length, int number) {
  ReceivePlace& place = *context->receives.Find(number);
  const auto& bytes = place.message.bytes;
  if (bytes.second.empty()) {
    *buffer = const_cast<unsigned char*>(bytes.first.data());
  } else {
    if (!place.whole) place.whole.reset(new (std::nothrow) unsigned char[PM_MTU]);
    if (!place.whole) return ENOMEM;
    memcpy(place.whole.get(), bytes.first.data(), bytes.first.size());
    memcpy(place.whole.get() + bytes.first.size(), bytes.second.data(), bytes.second.size());
    *buffer = place.whole.get();
  }
  *length = bytes.size();
  place.state = ReceivePlace::State::kGiven;
  context->queue_first = (context->queue_first + 1) % context->queue.size();
  --context->queue_count;
  return 0;
}

int GetSendBuffer(pmContext* context, int node, void** buffer, size_t length, int& number) {
  if (node < 0 || node >= context->nodes || length < 1 || length > PM_MTU) return EINVAL;
  const auto to = static_cast<NodeId>(node);
  std::error_code error = context->Room(to, length);
  if (error == Error::kWouldBlock && !context->core().HasJustProgressed()) {
    context->core().Progress();
    error = context->Room(to, length);
  }
  if (error) return Errno(error);
  // In a stopped job another thread may have been here meanwhile.
  if (&number == &context->sending && number >= 0) return EBUSY;
  const int taken = context->sends.Take();
  if (taken < 0) return EBUSY;
  SendPlace& place = *context->sends.Find(taken);
  if (!place.buffer) place.buffer.reset(new (std::nothrow) unsigned char[PM_MTU]);
  if (!place.buffer) {
    context->sends.Free(taken);
    return ENOMEM;
  }
  place.state = SendPlace::State::kOpen;
  place.node = to;
  place.length = length;
  ++context->open_sends;
  number = taken;
  *buffer = place.buffer.get();
  return 0;
}

// An open buffer, or null.
SendPlace* FindOpen(pmContext* context, int number) {
  SendPlace* const place = context->sends.Find(number);
  return place != nullptr && place->state == SendPlace::State::kOpen ? place : nullptr;
}

ReceivePlace* FindGiven(pmContext* context, int number) {
  ReceivePlace* const place = context->receives.Find(number);
  return place != nullptr && place->state == ReceivePlace::State::kGiven ? place : nullptr;
}

// What becomes of the place then is the caller's.
std::error_code Send(pmContext* context, SendPlace& place, bool more = false) {
  place.state = SendPlace::State::kSending;  // in a stopped job other threads may call meanwhile
  const Bytes message(place.buffer.get(), place.length);
  auto& core = context->core();
  return more ? core.SendMore(place.node, 0, message) : core.Send(place.node, 0, message);
}

int SendOpen(pmContext* context, bool more) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  const int number = context->sending;
  SendPlace* const place = FindOpen(context, number);
  if (place == nullptr) return EINVAL;
  context->sending = -1;
  const auto error = Send(context, *place, more);
  context->sends.Free(number);
  --context->open_sends;
  return Errno(error);
}

int GetSource(pmContext* context, int number, int* node) {
  const ReceivePlace* const place = FindGiven(context, number);
  if (place == nullptr) return EIO;
  *node = place->message.source;
  return 0;
}

int ReleaseReceiveBuffer(pmContext* context, int number) {
  ReceivePlace* const place = FindGiven(context, number);
  if (place == nullptr) return EIO;
  place->state = ReceivePlace::State::kReleasing;
  context->core().Release(place->message);
  context->receives.Free(number);
  return 0;
}

}  // namespace

std::error_code pmContext::Room(NodeId node, size_t length) {
  size_t open = 0, count = 0;
  if (open_sends > 0) {
    sends.ForEach([&open, &count, node](const SendPlace& place, int) {
      const bool is_open =
          place.state == SendPlace::State::kOpen || place.state == SendPlace::State::kSending;
      if (!is_open || place.node != node) return;
      open += kMessageHeadSize + Padded(place.length);
      ++count;
    });
  }
  const auto error = core().Room(node, 0, length + open, count);
  return open > 0 && error == Error::kTooLong ? Error::kWouldBlock : error;
}

bool pmContext::Look() {
  if (to_release > 0 && !DropReleased(*this)) return false;
  // Where remote memory is in use its messages are looked for behind those of the program, too.
  while (queue_count == 0 || remote.is_used()) {
    const int number = receives.Take();
    if (number < 0) break;
    Message& message = receives.Find(number)->message;
    if (!core().Receive(message)) {
      receives.Free(number);
      break;
    }
    const bool for_program = message.kind == MessageKind::kProgram;
    if (!for_program) remote.OnMessage(message.source, message.bytes);
    // Longer ones: no program of this interface sent them.
    if (!for_program || message.more || message.bytes.size() > PM_MTU) {
      Drop(*this, number);
      continue;
    }
    receives.Find(number)->state = ReceivePlace::State::kQueued;
    queue[(queue_first + queue_count++) % queue.size()] = number;
  }
  if (!core().IsStopped()) remote.Pump();
  return queue_count > 0 && !core().IsStopped();
}

// The second generation: one buffer of each kind.

int pmGetSendBuffer(pmContext* context, int node, void** buffer, size_t length) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  if (context->sending >= 0) return EBUSY;
  return GetSendBuffer(context, node, buffer, length, context->sending);
}

int pmSend(pmContext* context) { return SendOpen(context, false); }
int pmSendMore(pmContext* context) { return SendOpen(context, true); }

int pmIsSendDone(pmContext* context) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  context->core().Progress();
  (void)context->Look();
  if (const auto failure = context->remote.TakeFailure()) return Errno(failure);
  int result = context->remote.has_operations() ? EBUSY : 0;
  for (int i = 0; i < context->nodes; ++i) {
    const auto node = static_cast<NodeId>(i);
    if (context->core().Drained(node)) continue;
    if (context->core().peer_state(node) == PeerState::kGone) return EPIPE;
    context->core().Hurry(node);
    result = EBUSY;
  }
  return result;
}

int pmReceive(pmContext* context, void** buffer, size_t* length) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  if (context->receiving >= 0) return EBUSY;
  int number = -1;
  int error = Next(context, number);
  if (error == 0 && context->receiving >= 0) error = EBUSY;  // another thread's, in a stopped job
  if (error == 0) error = Open(context, buffer, length, number);
  if (error == 0) context->receiving = number;
  return error;
}

int pmGetSource(pmContext* context, int* node) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  return GetSource(context, context->receiving, node);
}

int pmReleaseReceiveBuffer(pmContext* context) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  const int number = context->receiving;
  context->receiving = -1;
  return ReleaseReceiveBuffer(context, number);
}

// The third.

int pmxGetSendBuffer(pmContext* context, int node, void** buffer, size_t length, int* descriptor) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  return GetSendBuffer(context, node, buffer, length, *descriptor);
}

int pmxTruncateBuffer(pmContext* context, int descriptor, size_t length) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  SendPlace* const place = FindOpen(context, descriptor);
  if (place == nullptr || length < 1 || length > place->length) return EINVAL;
  place->length = length;
  return 0;
}

int pmxSend(pmContext* context, int descriptor) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  SendPlace* const place = FindOpen(context, descriptor);
  if (place == nullptr || descriptor == context->sending) return EINVAL;
  // A peer's first session is number 1, and what is sent before it is of it.
  const auto session = std::max<std::uint32_t>(context->core().peer_session(place->node), 1);
  const auto error = Send(context, *place);
  if (error == Error::kWouldBlock) {
    place->state = SendPlace::State::kOpen;
    return ENOBUFS;
  }
  --context->open_sends;
  place->state = SendPlace::State::kSent;
  place->session = session;
  place->end = error ? ~std::uint64_t{0} : context->core().Written(place->node, 0);
  return Errno(error);
}

int pmxIsSendDone(pmContext* context, int descriptor) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  context->core().Progress();
  (void)context->Look();
  const SendPlace* const place = context->sends.Find(descriptor);
  if (place == nullptr || place->state == SendPlace::State::kOpen ||
      place->state == SendPlace::State::kSending) {
    return EINVAL;
  }
  if (place->state == SendPlace::State::kOperation) {
    const auto result = context->remote.Result(place->operation);
    return result == Error::kWouldBlock ? EBUSY : Errno(result);
  }
  if (context->core().peer_session(place->node) > place->session) return EPIPE;
  if (context->core().Acknowledged(place->node, 0) >= place->end) return 0;
  if (context->core().peer_state(place->node) == PeerState::kGone) return EPIPE;
  context->core().Hurry(place->node);
  return EBUSY;
}

int pmxReleaseSendDesc(pmContext* context, int descriptor) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  const SendPlace* const place = context->sends.Find(descriptor);
  if (place == nullptr || descriptor == context->sending ||
      place->state == SendPlace::State::kSending) {
    return EINVAL;
  }
  if (place->state == SendPlace::State::kOpen) --context->open_sends;
  if (place->state == SendPlace::State::kOperation) context->remote.Forget(place->operation);
  context->sends.Free(descriptor);
  return 0;
}

int pmxReceive(pmContext* context, void** buffer, size_t* length, int* descriptor) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  if (const int error = Next(context, *descriptor)) return error;
  return Open(context, buffer, length, *descriptor);
}

int pmxGetSource(pmContext* context, int descriptor, int* node) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  return GetSource(context, descriptor, node);
}

int pmxReleaseReceiveBuffer(pmContext* context, int descriptor) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  return ReleaseReceiveBuffer(context, descriptor);
}
