// SPDX-License-Identifier: Apache-2.0
// The C interface: transport/pm/pm.h.  Nothing here throws.
#include <errno.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "transport/pm/capi_context.h"

using sekisho::pm::Call;
using sekisho::pm::Context;
using sekisho::pm::Error;
using sekisho::pm::GangPhase;
using sekisho::pm::kNever;
using sekisho::pm::Nanos;
using sekisho::pm::PhaseOf;
using sekisho::pm::ReceivePlace;
using sekisho::pm::Wire;

namespace sekisho::pm {

int Errno(const std::error_code& error) {
  if (!error) return 0;
  if (error.category() == std::generic_category()) return error.value();
  switch (static_cast<Error>(error.value())) {
    case Error::kWouldBlock:
      return ENOBUFS;
    case Error::kPeerGone:
      return EPIPE;
    case Error::kNoMemory:
      return ENOMEM;
    case Error::kRefused:
      return EACCES;
    default:
      return EINVAL;
  }
}

}  // namespace sekisho::pm

using sekisho::pm::Errno;

namespace {

bool HasOpenBuffer(pmContext& context) {
  bool any = context.open_sends > 0;
  context.receives.ForEach([&any](const ReceivePlace& place, int) {
    any = any || place.state == ReceivePlace::State::kGiven;
  });
  return any;
}

// Waits for what the thread in the core's Wait finds; false: time is over.
bool Follow(pmContext& context, Nanos until) {
  std::unique_lock held(context.lock.mutex(), std::adopt_lock);
  bool in_time = true;
  if (until == kNever) {
    context.followed->wait(held);
  } else {
    const std::chrono::steady_clock::time_point when{std::chrono::nanoseconds(until)};
    in_time = context.followed->wait_until(held, when) == std::cv_status::no_timeout;
  }
  held.release();
  return in_time;
}

// 0: nothing of the whole job is under way.
int Stop(pmContext* context) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  if (HasOpenBuffer(*context)) return EINVAL;
  Context& core = context->core();
  // Operations on remote memory are of several messages: they end before the job stops.
  (void)context->Look();
  if (!core.IsStopped() && !context->remote.is_busy()) core.JoinGang(true);
  core.Progress();
  if (PhaseOf(core.gang().wave) != GangPhase::kSettled) return EBUSY;
  return 0;
}

}  // namespace

void pmContext::NoteChange() {
  const bool others_select =
      selecting > 1 || (selecting == 1 && pthread_equal(selects, pthread_self()) == 0);
  // Room that was refused between pmBeforeSelect and select.
  const bool selects_refused = selecting > 0 && core().IsRefused();
  if (!waits && !others_select && !selects_refused) return;
  const bool holds = queue_count > 0 || core().HasMessage();
  core().NoteChange(holds);
  if (!others_select && !selects_refused) return;
  const Nanos now = Wire::Now();
  timer.Set(holds ? now : core().NextDeadline(), now);
}

int pmDetachContext(pmContext* context, int* fd) {
  {
    const Call call(context);
    if (!call.is_ours()) return ECHILD;
    if (fd == nullptr || HasOpenBuffer(*context)) return EINVAL;
    if (context->remote.is_busy() || context->to_release > 0) return EBUSY;
    if (const auto error = context->core().Detach(*fd)) return Errno(error);
  }
  delete context;  // the daemon sees the connection in the descriptor, and waits
  return 0;
}

int pmCloseDevice(pmContext* context) {
  if (context->mark.is_forked()) {
    // The child's descriptors and mappings go; nobody is told, and who waited is not here.
    (void)context->followed.release();
  } else if (context->core().has_daemon()) {
    context->core().LeaveToDaemon();  // it delivers what is still under way, and closes then
  } else {
    context->core().CloseAll();
  }
  delete context;
  return 0;
}

int pmGetNode(pmContext* context, int* node, int* nodes) {
  if (context->mark.is_forked()) return ECHILD;
  *node = context->core().config().node;
  *nodes = context->nodes;
  return 0;
}

int pmGetDescriptor(pmContext* context, int* descriptor) {
  if (context->mark.is_forked()) return ECHILD;
  *descriptor = context->descriptor;
  return 0;
}

int pmWait(pmContext* context, long timeout_us) {
  const Nanos now = Wire::Now();
  const bool is_limited = timeout_us >= 0 && timeout_us < (kNever - now) / sekisho::pm::kMicrosecond;
  const Nanos until = is_limited ? now + timeout_us * sekisho::pm::kMicrosecond : kNever;
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  while (context->waits) {  // another thread does already; its end is ours, or our turn
    if (context->Look()) return 0;
    if (!Follow(*context, until)) return ETIMEDOUT;
  }
  context->waits = true;
  const auto look = [](void* of) { return static_cast<pmContext*>(of)->Look(); };
  const bool any = context->core().Wait(until, {look, context});
  context->waits = false;
  context->followed->notify_all();
  return any ? 0 : ETIMEDOUT;
}

int pmBeforeSelect(pmContext* context) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  if (context->selecting == 0 || pthread_equal(context->selects, pthread_self()) == 0) {
    ++context->selecting;
    context->selects = pthread_self();
    context->core().set_sleeping(true);
  }
  context->core().Progress();
  (void)context->Look();
  const Nanos now = Wire::Now();
  context->timer.Set(context->core().HasNear() ? now : context->core().NextDeadline(), now);
  return 0;
}

int pmAfterSelect(pmContext* context) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  if (context->selecting > 0) {
    --context->selecting;
    context->core().set_sleeping(false);
  }
  context->core().Quiet();
  const Nanos now = Wire::Now();
  context->timer.Quiet(now, true);
  context->core().NoteWoken(now);
  context->core().Progress();
  (void)context->Look();
  return 0;
}

int pmCheckpoint(pmContext* context, int (*callback)(void*), void* argument) {
  if (const int error = Stop(context)) return error;
  return callback != nullptr ? callback(argument) : 0;  // it may call us
}

int pmRestartUser(pmContext* context) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  Context& core = context->core();
  if (!core.IsStopped()) return 0;
  core.JoinGang(false);
  core.Progress();
  return core.IsStopped() ? EBUSY : 0;
}

int pmGetStopState(pmContext* context, int* waiting, int* gone) {
  const Call call(context);
  if (!call.is_ours()) return ECHILD;
  const auto gang = context->core().gang();
  if (PhaseOf(gang.wave) != GangPhase::kSettled) return EBUSY;
  *waiting = static_cast<int>(std::min(gang.idle, 65535u));
  *gone = static_cast<int>(std::min(gang.gone, 65535u));
  return 0;
}
