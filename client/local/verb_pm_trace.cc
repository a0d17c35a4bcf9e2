// SPDX-License-Identifier: Apache-2.0
#include "client/local/verb_pm_trace.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/local/pm_daemon.h"
#include "client/verbs/verbs.h"
#include "transport/pm/pcapng.h"
#include "transport/pm/trace.h"
#include "transport/pm/wire.h"

namespace sekisho::client {
namespace {

constexpr pm::Nanos kTurn = 5 * pm::kMillisecond;  // a ring holds what is sent in several
constexpr pm::Nanos kLookWhetherItEnded = pm::kSecond;
// Few, for after a second without being asked for datagrams are not recorded any more: to follow a
// ring that is written as fast as it is read has no end, and many take long to write to a disk.
constexpr std::uint64_t kDatagramsOfATurn = 256;

struct TraceOptions {
  std::string daemon;
  std::string job;  // its file, or the number of its context
  std::string key;
  std::string out = "-";
  int node = -1;
  std::uint64_t count = 0;
  double time_s = 0;
  bool with_keys = false;
  bool is_json = false;
};

volatile std::sig_atomic_t ended_by_user = 0;

void EndByUser(int) { ended_by_user = 1; }

[[noreturn]] void EndBySpoiledMemory() {
  fmt::print(stderr, "sekisho pm trace: the memory of the context is spoiled\n");
  _exit(kPmFailed);
}

std::string Name(const pm::Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, address.ip.data(), text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), address.port);
}

// What is asked of the daemon, and with which key.
struct Target {
  unsigned context = 0;
  std::string key;
};

bool FindTarget(const TraceOptions& options, Target& target) {
  const char* end = options.job.data() + options.job.size();
  const auto [rest, error] = std::from_chars(options.job.data(), end, target.context);
  if (error == std::errc() && rest == end) {
    target.key = options.key;
    if (target.key.empty()) {
      fmt::print(stderr, "sekisho pm trace: for context {} say --key FILE, or name the job file\n",
                 target.context);
    }
    return !target.key.empty() && target.context <= UINT16_MAX;
  }
  pm::JobFile job;
  if (!ReadPmJob(options.job, job)) {
    return false;
  }
  target.context = job.context;
  target.key = options.key.empty() ? job.key_path.get() : options.key;
  return true;
}

// The contexts of this host that are traced, as one file.
class Trace {
 public:
  Trace(const TraceOptions& options, int key, int out) : options_(options), key_(key), out_(out) {}

  // 0 or errno.
  int Open(unsigned context) {
    int error = 0;
    for (const int node : PmNodesHere(options_.daemon, context, options_.node, key_, error)) {
      pm::AskMessage ask;
      ask.ask = pm::Ask::kTrace;
      ask.config.context = static_cast<std::uint16_t>(context);
      ask.config.node = static_cast<pm::NodeId>(node);
      std::unique_ptr<pm::TracedContext> traced;
      if (const int refused = Ask(ask, &traced)) {
        return refused;
      }
      contexts_.push_back(std::move(traced));
    }
    return contexts_.empty() && error == 0 ? ENOENT : error;
  }

  // Until the user, --count, --time or the contexts end it.  0 or errno.
  int Run() {
    const pm::Nanos begin = pm::Wire::Now();
    const pm::Nanos limit = options_.time_s > 0
                                ? begin + static_cast<pm::Nanos>(options_.time_s * pm::kSecond)
                                : pm::kNever;
    Begin();
    pm::Nanos look = begin + kLookWhetherItEnded;
    bool gone = false;
    for (;;) {
      const pm::Nanos now = pm::Wire::Now();
      const bool last = ended_by_user != 0 || now >= limit || gone;
      // In the last one nobody is waited for.
      const bool is_behind =
          last ? Turn(pm::kNever, pm::TraceRing::kSlots) : Turn(now, kDatagramsOfATurn);
      if (const int error = Write()) {
        return error;
      }
      if (last || IsFull()) {
        break;
      }
      if (now >= look) {
        gone = HaveEnded();
        look = now + kLookWhetherItEnded;
      }
      if (!is_behind) {
        poll(nullptr, 0, kTurn / pm::kMillisecond);
      }
    }
    End();
    return Write();
  }

  std::uint64_t written() const { return written_; }
  std::uint64_t lost() const {
    std::uint64_t sum = 0;
    for (const auto& context : contexts_) {
      sum += context->lost();
    }
    return sum;
  }

 private:
  struct Line {
    pm::Nanos time;
    std::string block;
  };

  bool IsFull() const { return options_.count > 0 && written_ >= options_.count; }

  int Ask(const pm::AskMessage& ask, std::unique_ptr<pm::TracedContext>* traced) {
    std::string text;
    int memory = -1;
    if (const int error = AskPmDaemon(options_.daemon, ask, std::span(&key_, 1), text, &memory)) {
      return error;
    }
    if (traced == nullptr) {
      close(memory);
      return 0;
    }
    return pm::TracedContext::Open(memory, *traced) ? EPROTO : 0;
  }

  // Twice in a row: a new daemon may not have adopted them yet.
  bool HaveEnded() {
    pm::AskMessage ask;
    ask.ask = pm::Ask::kTrace;
    const bool all = std::all_of(contexts_.begin(), contexts_.end(), [&](const auto& context) {
      ask.config.context = context->config().context;
      ask.config.node = context->config().node;
      return Ask(ask, nullptr) == ENOENT;
    });
    return std::exchange(were_missing_, all) && all;
  }

  void Begin() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    clock_ = now.tv_sec * pm::kSecond + now.tv_nsec - pm::Wire::Now();
    pm::PcapngWriter writer(text_);
    writer.Section("sekisho pm trace");
    for (const auto& context : contexts_) {
      const pm::Config& config = context->config();
      writer.Interface(fmt::format("pm{}.{}", config.context, config.node),
                       fmt::format("PM context {} node {} at {}", config.context, config.node,
                                   Name(context->own())));
    }
    counts_.resize(contexts_.size());
  }

  // Takes of each context so many datagrams at most; whether there may be more.
  bool Turn(pm::Nanos now, std::uint64_t most) {
    std::vector<Line> lines;
    pm::TracedDatagram datagram;
    bool is_behind = false;
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
      for (const auto& context : contexts_) {
        context->Ask(pm::Wire::Now());
      }
      std::uint64_t taken = 0;
      while (taken < most && contexts_[i]->Next(datagram, now)) {
        Line& line = lines.emplace_back(Line{datagram.time, {}});
        pm::PcapngWriter(line.block)
            .Datagram(static_cast<std::uint32_t>(i), contexts_[i]->own(), clock_, datagram);
        ++taken;
      }
      counts_[i] += taken;
      is_behind = is_behind || taken == most;
    }
    // A session's keys are there before its first packet was sent.
    for (const auto& context : contexts_) {
      const std::string keys = options_.with_keys ? context->NewKeys() : "";
      if (!keys.empty()) {
        pm::PcapngWriter(text_).Secrets(pm::kPmKeyLog, keys);
      }
    }
    std::stable_sort(lines.begin(), lines.end(),
                     [](const Line& a, const Line& b) { return a.time < b.time; });
    for (const Line& line : lines) {
      if (IsFull()) {
        break;
      }
      text_ += line.block;
      ++written_;
    }
    return is_behind;
  }

  void End() {
    const pm::Nanos now = clock_ + pm::Wire::Now();
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
      pm::PcapngWriter(text_).Statistics(static_cast<std::uint32_t>(i), now,
                                         counts_[i] + contexts_[i]->lost(), contexts_[i]->lost());
    }
  }

  int Write() {
    for (std::size_t done = 0; done < text_.size();) {
      const ssize_t size = write(out_, text_.data() + done, text_.size() - done);
      if (size < 0 && errno != EINTR) {
        return errno;
      }
      done += size > 0 ? static_cast<std::size_t>(size) : 0;
    }
    text_.clear();
    return 0;
  }

  const TraceOptions& options_;
  int key_;
  int out_;
  std::vector<std::unique_ptr<pm::TracedContext>> contexts_;
  std::vector<std::uint64_t> counts_;
  std::string text_;
  pm::Nanos clock_ = 0;  // from the monotonic one to nanoseconds since 1970
  std::uint64_t written_ = 0;
  bool were_missing_ = false;
};

// The contents of messages are in it, and keys perhaps: nobody else's.  A device or a pipe is left as it is
// and gets no keys; of files, only one that nobody else owns or has under another name.
int OpenOut(const std::string& path, bool with_keys) {
  const int out = open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (out < 0) {
    return -1;
  }
  struct stat found {};
  int error = fstat(out, &found) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(found.st_mode)) {
    if (found.st_uid != geteuid() || found.st_nlink != 1) {
      error = EPERM;
    } else if (fchmod(out, 0600) != 0 || ftruncate(out, 0) != 0) {
      error = errno;
    }
  } else if (error == 0 && with_keys) {
    error = EPERM;
  }
  if (error != 0) {
    close(out);
    errno = error;
    return -1;
  }
  return out;
}

int TraceVerb(const TraceOptions& options) {
  const bool to_stdout = options.out == "-";
  if (to_stdout && (options.with_keys || isatty(STDOUT_FILENO) != 0)) {
    fmt::print(stderr, "sekisho pm trace: say --out FILE{}\n",
               options.with_keys ? ": keys go into a file of mode 0600 only" : "");
    return kPmUsage;
  }
  Target target;
  if (!FindTarget(options, target)) {
    return kPmUsage;
  }
  const int key = open(target.key.c_str(), O_RDONLY | O_CLOEXEC);
  if (key < 0) {
    return PmFail(target.key, errno);
  }
  const int out = to_stdout ? STDOUT_FILENO : OpenOut(options.out, options.with_keys);
  if (out < 0) {
    return PmFail(options.out, errno);
  }
  std::signal(SIGINT, EndByUser);
  std::signal(SIGTERM, EndByUser);
  std::signal(SIGPIPE, SIG_IGN);
  pm::SetSpoiledHandler([] { EndBySpoiledMemory(); });
  Trace trace(options, key, out);
  int error = trace.Open(target.context);
  if (error != 0) {
    return PmRefused(options.job, pm::Ask::kTrace, error);
  }
  error = trace.Run();
  if (error != 0 && error != EPIPE) {  // who read it has seen enough
    return PmFail(options.out, error);
  }
  if (options.is_json && !to_stdout) {
    fmt::print("{}\n",
               nlohmann::json{{"datagrams", trace.written()}, {"lost", trace.lost()}}.dump());
  } else {
    fmt::print(stderr, "datagrams {} lost {}\n", trace.written(), trace.lost());
  }
  return 0;
}

}  // namespace

void AddPmTraceVerb(CLI::App& pm, Invocation& invocation) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* verb = pm.add_subcommand(
      "trace", "The datagrams of a running job's contexts on this host, as a pcapng file");
  verb->add_option("JOB", options->job, "The job file, or the number of a context (with --key)")
      ->required();
  verb->add_option("--key", options->key, "The job's key file (else the one of the job file)");
  verb->add_option("--node", options->node, "Only this node (else all of the job on this host)");
  verb->add_option("--out", options->out, "FILE, made with mode 0600; - is standard output")
      ->capture_default_str();
  verb->add_flag("--keys", options->with_keys,
                 "The sessions' keys, too: FILE opens them to anyone");
  verb->add_option("--count", options->count, "Ends after so many datagrams");
  verb->add_option("--time", options->time_s, "Ends after so many seconds");
  verb->add_option("--daemon", options->daemon, "Socket of sekisho-pmd (else PM_DAEMON)");
  verb->add_flag("--json", options->is_json, "For machines");
  verb->callback([options, &invocation] { invocation.exit_code = TraceVerb(*options); });
}

}  // namespace sekisho::client
