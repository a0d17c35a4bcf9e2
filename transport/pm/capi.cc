// SPDX-License-Identifier: Apache-2.0
// The C interface: transport/pm/pm.h.  Nothing here throws.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <mutex>
#include <new>

#include "transport/pm/agent_door.h"
#include "transport/pm/capi_context.h"
#include "transport/pm/job_file.h"

using sekisho::pm::Address;
using sekisho::pm::Call;
using sekisho::pm::Config;
using sekisho::pm::Context;
using sekisho::pm::Error;
using sekisho::pm::GangPhase;
using sekisho::pm::JobFile;
using sekisho::pm::kNever;
using sekisho::pm::kSecond;
using sekisho::pm::Nanos;
using sekisho::pm::NodeId;
using sekisho::pm::PhaseOf;
using sekisho::pm::ReceivePlace;
using sekisho::pm::Waiting;
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

struct Arguments {
  std::array<char, 108> asked{};  // for `daemon`
  const char* job = nullptr;
  const char* node = nullptr;
  const char* daemon = nullptr;
  const char* wait = nullptr;
  const char* datagram = nullptr;
};

bool ReadArguments(int argc, char** argv, Arguments& arguments) {
  arguments.job = getenv("PM_JOB_FILE");
  arguments.node = getenv("PM_NODE");
  arguments.daemon = getenv("PM_DAEMON");
  arguments.wait = getenv("PM_WAIT");
  arguments.datagram = getenv("PM_DATAGRAM");
  for (int i = 0; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--job") == 0) {
      arguments.job = argv[i + 1];
    } else if (strcmp(argv[i], "--node") == 0) {
      arguments.node = argv[i + 1];
    } else if (strcmp(argv[i], "--daemon") == 0) {
      arguments.daemon = argv[i + 1];
    } else if (strcmp(argv[i], "--wait") == 0) {
      arguments.wait = argv[i + 1];
    } else if (strcmp(argv[i], "--datagram") == 0) {
      arguments.datagram = argv[i + 1];
    } else {
      return false;
    }
  }
  return argc % 2 == 0 && arguments.job != nullptr && arguments.node != nullptr;
}

bool ReadNumber(const char* text, unsigned long least, unsigned long most, unsigned long& number) {
  char* end = nullptr;
  number = strtoul(text, &end, 10);
  return text[0] >= '0' && text[0] <= '9' && *end == 0 && number >= least && number <= most;
}

// There is no cipher in this library: better no context than one that everybody can read.
bool WantsEncryption() {
  const char* wanted = getenv("PM_ENCRYPT");
  return wanted != nullptr && wanted[0] != 0 && strcmp(wanted, "0") != 0;
}

// The one that was named, the one that the job's agent starts, or none.
int FindDaemon(Arguments& arguments) {
  const char* agent = getenv("PM_AGENT");
  if (arguments.daemon == nullptr && agent != nullptr) {
    if (const int error = sekisho::pm::AskAgent(agent, arguments.asked)) return error;
    arguments.daemon = arguments.asked.data();
  }
  if (arguments.daemon != nullptr && arguments.daemon[0] == 0) arguments.daemon = nullptr;
  return 0;
}

bool ReadWaiting(const char* name, Waiting& waiting) {
  constexpr const char* kNames[] = {"spin", "yield", "adaptive", "sleep", "classic"};
  waiting = Waiting::kAdaptive;
  if (name == nullptr) return true;
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (strcmp(name, kNames[i]) != 0) continue;
    waiting = static_cast<Waiting>(i);
    return true;
  }
  return false;
}

// Larger with every start: wall clock, so that a restarted rank is newer than the one that died.
std::uint64_t Incarnation() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

int OpenDescriptor(pmContext& context) {
  context.descriptor = epoll_create1(EPOLL_CLOEXEC);
  if (context.descriptor < 0) return errno;
  if (const auto error = context.timer.Open()) return error.value();
  for (const int fd : {context.core().fd(), context.timer.fd(), context.core().bell()}) {
    if (fd < 0) continue;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(context.descriptor, EPOLL_CTL_ADD, fd, &event) != 0) return errno;
  }
  return 0;
}

// The program's side of it.
int Begin(std::unique_ptr<Context> core, const Address& own, Waiting waiting, pmContext** out) {
  std::unique_ptr<pmContext> context(new (std::nothrow) pmContext);
  if (!context) return ENOMEM;
  context->context = std::move(core);
  const Config& config = context->core().config();
  context->nodes = config.nodes;
  context->own = own;
  context->told_gone.reset(new (std::nothrow) bool[config.nodes]());
  context->followed.reset(new (std::nothrow) std::condition_variable);
  if (!context->told_gone || !context->followed) return ENOMEM;
  if (const auto error = context->remote.Init(config.node, config.nodes, context->port)) {
    return Errno(error);
  }
  const char* const near = getenv("PM_NEAR");
  context->core().set_near(near == nullptr || strcmp(near, "0") != 0);
  context->core().set_waiting(waiting);
  context->core().set_lock(&context->lock);
  if (const int error = OpenDescriptor(*context)) return error;
  *out = context.release();
  return 0;
}

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

int pmOpenDevice(const char* type, int argc, char** argv, pmContext** out) {
  Arguments arguments;
  if (type == nullptr || strcmp(type, "udp") != 0 || out == nullptr ||
      !ReadArguments(argc, argv, arguments)) {
    return EINVAL;
  }
  Waiting waiting;
  if (!ReadWaiting(arguments.wait, waiting)) return EINVAL;
  if (WantsEncryption()) return ENOTSUP;
  JobFile job;
  int line;
  if (const auto error = sekisho::pm::ReadJobFile(arguments.job, job, line)) return Errno(error);
  unsigned long node;
  if (!ReadNumber(arguments.node, 0, job.nodes - 1u, node)) return EINVAL;
  Config config;
  unsigned long datagram = config.datagram_max;
  if (arguments.datagram != nullptr && !ReadNumber(arguments.datagram, sekisho::pm::kDatagramBase,
                                                   sekisho::pm::kDatagramMax, datagram)) {
    return EINVAL;
  }
  config.datagram_max = static_cast<std::uint32_t>(datagram);
  config.node = static_cast<NodeId>(node);
  config.nodes = job.nodes;
  config.context = job.context;
  config.channels = job.channels;
  config.send_ring = config.receive_ring = sekisho::pm::DefaultRing(job.nodes, job.channels);
  config.payload_tag = job.payload_tag;
  config.key = job.key;
  config.incarnation = Incarnation();
  if (getrandom(&config.seed, sizeof config.seed, 0) != sizeof config.seed) return EIO;
  if (const int error = FindDaemon(arguments)) return error;
  int key_fd = -1;
  if (arguments.daemon != nullptr) {
    key_fd = open(job.key_path.get(), O_RDONLY | O_CLOEXEC);
    if (key_fd < 0) return errno;
  }
  std::unique_ptr<Context> core;
  const auto opened = Context::Open(config, job.addresses[node], arguments.daemon, key_fd, core);
  if (key_fd >= 0) close(key_fd);
  if (opened) return Errno(opened);
  for (NodeId peer = 0; peer < job.nodes; ++peer) {
    (void)core->SetAddress(peer, job.addresses[peer]);
  }
  return Begin(std::move(core), job.addresses[node], waiting, out);
}

int pmAttachContext(const char* type, int fd, pmContext** out) {
  Waiting waiting;
  if (type == nullptr || strcmp(type, "udp") != 0 || out == nullptr ||
      !ReadWaiting(getenv("PM_WAIT"), waiting)) {
    return EINVAL;
  }
  if (WantsEncryption()) return ENOTSUP;
  std::unique_ptr<Context> core;
  if (const auto error = Context::Attach(fd, core)) return Errno(error);
  const Address own = core->head().own;
  return Begin(std::move(core), own, waiting, out);
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
  const Nanos until =
      timeout_us < 0 ? kNever : Wire::Now() + timeout_us * sekisho::pm::kMicrosecond;
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
