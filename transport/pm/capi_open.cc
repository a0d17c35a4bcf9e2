// SPDX-License-Identifier: Apache-2.0
// The C interface: how a context comes to be.  Nothing here throws.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <iterator>
#include <new>

#include "transport/pm/agent_door.h"
#include "transport/pm/capi_context.h"
#include "transport/pm/job_file.h"
#include "transport/pm/number.h"
#include "transport/pm/pmi_job.h"

using sekisho::pm::Address;
using sekisho::pm::Config;
using sekisho::pm::Context;
using sekisho::pm::Errno;
using sekisho::pm::JobFile;
using sekisho::pm::kSecond;
using sekisho::pm::NodeId;
using sekisho::pm::PmiJob;
using sekisho::pm::ReadNumber;
using sekisho::pm::Waiting;

namespace {

constexpr unsigned long kKeepAliveMax = 24 * 3600;  // seconds

struct Arguments {
  std::array<char, 108> asked{};  // for `daemon`
  const char* job = nullptr;
  const char* node = nullptr;
  const char* daemon = nullptr;
  const char* wait = nullptr;
  const char* datagram = nullptr;
  const char* keep_alive = nullptr;

  bool IsByPmi() const { return strcmp(job, "pmi") == 0; }
};

bool ReadArguments(int argc, char** argv, Arguments& arguments) {
  arguments.job = getenv("PM_JOB_FILE");
  arguments.node = getenv("PM_NODE");
  arguments.daemon = getenv("PM_DAEMON");
  arguments.wait = getenv("PM_WAIT");
  arguments.datagram = getenv("PM_DATAGRAM");
  arguments.keep_alive = getenv("PM_KEEPALIVE");
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
    } else if (strcmp(argv[i], "--keepalive") == 0) {
      arguments.keep_alive = argv[i + 1];
    } else {
      return false;
    }
  }
  return argc % 2 == 0 && arguments.job != nullptr &&
         (arguments.IsByPmi() || arguments.node != nullptr);
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

// What the arguments say of it.
bool ReadConfig(const Arguments& arguments, Config& config) {
  unsigned long datagram = config.datagram_max;
  if (arguments.datagram != nullptr && !ReadNumber(arguments.datagram, sekisho::pm::kDatagramBase,
                                                   sekisho::pm::kDatagramMax, datagram)) {
    return false;
  }
  config.datagram_max = static_cast<std::uint32_t>(datagram);
  unsigned long seconds = 0;
  if (arguments.keep_alive != nullptr &&
      !ReadNumber(arguments.keep_alive, 0, kKeepAliveMax, seconds)) {
    return false;
  }
  config.keep_alive_ms = static_cast<std::uint32_t>(seconds * 1000);
  return true;
}

// What proves to the daemon that we know the key: its file, or memory that looks like one.
int OpenKey(const JobFile& job) {
  if (job.key_path) return open(job.key_path.get(), O_RDONLY | O_CLOEXEC);
  const int fd = memfd_create("pm-key", MFD_CLOEXEC);
  if (fd < 0) return -1;
  const auto size = static_cast<ssize_t>(job.key.size());
  if (fchmod(fd, 0600) == 0 && write(fd, job.key.data(), job.key.size()) == size) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// The context of node `node`, at `own`.
int OpenCore(Arguments& arguments, Config config, const JobFile& job, NodeId node,
             const Address& own, std::unique_ptr<Context>& core) {
  config.node = node;
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
    key_fd = OpenKey(job);
    if (key_fd < 0) return errno;
  }
  const auto opened = Context::Open(config, own, arguments.daemon, key_fd, core);
  if (key_fd >= 0) close(key_fd);
  return Errno(opened);
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

int Introduce(std::unique_ptr<Context> core, const JobFile& job, const Address& own,
              Waiting waiting, pmContext** out) {
  for (NodeId peer = 0; peer < job.nodes; ++peer) {
    (void)core->SetAddress(peer, job.addresses[peer]);
  }
  return Begin(std::move(core), own, waiting, out);
}

int OpenByFile(Arguments& arguments, const Config& config, Waiting waiting, pmContext** out) {
  JobFile job;
  int line;
  if (const auto error = sekisho::pm::ReadJobFile(arguments.job, job, line)) return Errno(error);
  unsigned long node;
  if (!ReadNumber(arguments.node, 0, job.nodes - 1u, node)) return EINVAL;
  const Address& own = job.addresses[node];
  std::unique_ptr<Context> core;
  const int error = OpenCore(arguments, config, job, static_cast<NodeId>(node), own, core);
  return error != 0 ? error : Introduce(std::move(core), job, own, waiting, out);
}

int OpenByPmi(Arguments& arguments, const Config& config, Waiting waiting, pmContext** out) {
  PmiJob pmi;
  JobFile job;
  NodeId node;
  if (const auto error = pmi.Begin(job, node)) return Errno(error);
  Address own;
  std::unique_ptr<Context> core;
  int error = Errno(sekisho::pm::FindOwnAddress(getenv("PM_INTERFACE"), own));
  if (error == 0) error = OpenCore(arguments, config, job, node, own, core);
  const char* const job_out = node == 0 ? getenv("PM_JOB_OUT") : nullptr;
  if (error == 0 && job_out != nullptr) error = Errno(sekisho::pm::WriteJobKey(job_out, job.key));
  if (error != 0) {
    pmi.Withdraw();
    return error;
  }
  own = core->own_address();  // with the port that was free
  if (const auto failed = pmi.Meet(own, job)) return Errno(failed);
  if (job_out != nullptr) {
    if (const auto failed = sekisho::pm::WriteJobFile(job_out, job)) return Errno(failed);
  }
  return Introduce(std::move(core), job, own, waiting, out);
}

}  // namespace

int pmOpenDevice(const char* type, int argc, char** argv, pmContext** out) {
  Arguments arguments;
  Waiting waiting;
  Config config;
  if (type == nullptr || strcmp(type, "udp") != 0 || out == nullptr ||
      !ReadArguments(argc, argv, arguments) || !ReadWaiting(arguments.wait, waiting) ||
      !ReadConfig(arguments, config)) {
    return EINVAL;
  }
  if (WantsEncryption()) return ENOTSUP;
  return arguments.IsByPmi() ? OpenByPmi(arguments, config, waiting, out)
                             : OpenByFile(arguments, config, waiting, out);
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
