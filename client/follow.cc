// SPDX-License-Identifier: Apache-2.0
#include "client/follow.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <random>
#include <semaphore>
#include <thread>

#include <asio/signal_set.hpp>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "client/harmless.h"
#include "client/progress.h"
#include "client/unsent_input.h"

namespace sekisho::client {
namespace {

constexpr size_t kInputBytes = 64 * 1024;
constexpr uint64_t kInputKeptMost = 4 << 20;  // sent, and not yet known to be taken
constexpr std::chrono::milliseconds kInputProbeAfter{5'000};
constexpr std::chrono::milliseconds kInputPauseMost{3'000};

// False: nobody reads us any more.
bool WriteAll(int fd, std::string_view data) {
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t written = write(fd, data.data() + done, data.size() - done);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      return false;
    }
    done += static_cast<size_t>(written);
  }
  return true;
}

// Reads our standard input on a thread of its own (it may be a file, which no loop can wait for).  The
// thread waits until a piece is taken before it reads on.
struct Pump {
  explicit Pump(Loop& loop) : ready(loop) {}
  Signal ready;
  std::binary_semaphore taken{0};
  std::string data;
  bool has_data = false;
};

std::shared_ptr<Pump> StartPump(Loop& loop) {
  auto pump = std::make_shared<Pump>(loop);
  std::thread([pump, &loop] {
    std::string buffer(kInputBytes, '\0');
    for (;;) {
      const ssize_t size = read(STDIN_FILENO, buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) {
        continue;
      }
      asio::post(loop, [pump, chunk = buffer.substr(0, static_cast<size_t>(std::max<ssize_t>(size, 0)))] {
        pump->data = chunk;
        pump->has_data = true;
        pump->ready.Notify();
      });
      if (size <= 0) {
        return;
      }
      pump->taken.acquire();
    }
  }).detach();
  return pump;
}

void TakeFrom(Pump& pump, UnsentInput& input) {
  if (pump.data.empty()) {
    input.End();
  }
  input.Add(pump.data);
  pump.data.clear();
  pump.has_data = false;
  pump.taken.release();
}

// One call: from the first byte that is not known to be taken.  It ends at the end of the input, when the
// site ends it, or, so that little need be kept, after some megabytes.  How far the task is, or why not.
awaitable<absl::StatusOr<uint64_t>> FeedOnce(Session& session, const std::string& job_id, Pump& pump,
                                             UnsentInput& input) {
  auto call = rpc::Start<rpc::ClientWriter<proto::InputChunk, proto::InputReply>>(
      session.loop(), session.Options(), [&](auto& started) {
        session.stub().async()->Input(&started.context(), &started.reply, &started);
      });
  uint64_t at = input.first();
  bool is_open = true;
  while (is_open && at - input.first() < kInputKeptMost) {
    if (at == input.size() && !input.has_ended() && !pump.has_data) {
      co_await pump.ready.WaitFor(kInputProbeAfter);  // then an empty piece shows whether the call stands
    }
    if (at == input.size() && pump.has_data) {
      TakeFrom(pump, input);
    }
    proto::InputChunk chunk = input.From(at, kInputBytes);
    chunk.set_job_id(job_id);
    at += chunk.data().size();
    const bool is_end = chunk.end();
    const bool is_sent = co_await call->Write(std::move(chunk));
    is_open = is_sent && !is_end;
  }
  call->CloseWrites();
  CO_RETURN_IF_ERROR(co_await call->Finish());
  co_return call->reply.accepted();
}

bool IsWorthAnotherTry(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnimplemented:
      return false;
    default:
      return true;
  }
}

// Until the task has all of our input, or takes no more.
awaitable<void> FeedInput(Session& session, std::string job_id) {
  const auto pump = StartPump(session.loop());
  UnsentInput input;
  std::chrono::milliseconds pause{0};
  while (!input.is_done()) {
    const absl::StatusOr<uint64_t> taken = co_await FeedOnce(session, job_id, *pump, input);
    if (!taken.ok() && !IsWorthAnotherTry(taken.status())) {
      fmt::print(stderr, "sekisho: standard input is not passed on after byte {}: {}\n", input.first(),
                 Harmless(Message(taken.status())));
      co_return;
    }
    const bool has_moved = taken.ok() && input.Take(*taken);
    if (taken.ok() && *taken == 0 && input.first() > 0) {
      co_return;  // the job is over
    }
    if (taken.ok() && input.has_ended() && *taken == input.size()) {
      co_return;
    }
    pause = has_moved ? std::chrono::milliseconds(0)
                      : std::min(pause * 2 + std::chrono::milliseconds(100), kInputPauseMost);
    if (pause.count() > 0) {
      co_await Sleep(session.loop(), pause);
    }
  }
}

// The state that Follow shares with its Ctrl-C watcher, which may outlive it.
struct Watch {
  explicit Watch(Loop& loop) : changed(loop) {}
  UpdateStream updates;
  Signal changed;
  std::string job_id;
  std::string request_id;
  bool wants_cancel = false;
  bool sent_cancel = false;
  bool was_left = false;
};

awaitable<void> SendCancel(Session& session, std::shared_ptr<Watch> watch) {
  if (watch->sent_cancel) {
    co_return;
  }
  watch->sent_cancel = true;
  const bool was_nameless = watch->job_id.empty();
  const auto reply = co_await Cancel(session, watch->job_id, watch->request_id);
  if (was_nameless && !reply.ok()) {
    watch->sent_cancel = false;  // the site has not come so far: again when the job has a name
    if (!watch->job_id.empty()) {
      co_await SendCancel(session, watch);
    }
    co_return;
  }
  if (!reply.ok() && reply.status().code() != absl::StatusCode::kFailedPrecondition) {
    watch->sent_cancel = false;
    fmt::print(stderr, "sekisho: could not cancel: {}\n", Harmless(Message(reply.status())));
  }
}

awaitable<void> WatchInterrupt(Session& session, std::shared_ptr<Watch> watch, bool cancels) {
  asio::signal_set signals(session.loop(), SIGINT, SIGTERM);
  for (;;) {
    const auto [error, signal] = co_await signals.async_wait(kAsTuple);
    if (error) {
      co_return;
    }
    if (watch->wants_cancel || !cancels) {
      watch->was_left = true;
      watch->updates->Cancel();
      watch->changed.Notify();
      co_return;
    }
    watch->wants_cancel = true;
    fmt::print(stderr, "sekisho: cancelling; Ctrl-C again leaves without waiting\n");
    co_spawn(session.loop(), SendCancel(session, watch), detached);  // the next is heard meanwhile
  }
}

constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::milliseconds kLongestPause{5'000};

// A time without connection: from its loss until an update comes again.
class Outage {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Outage(std::chrono::seconds patience) : patience_(patience) {}

  bool is_open() const { return is_open_; }
  void Begin(Clock::time_point now) {
    is_open_ = true;
    until_ = now + patience_;
    pause_ = kFirstPause;
  }
  void End() { is_open_ = false; }
  // How long to wait before the next try; zero: the time is up.
  std::chrono::milliseconds NextPause(Clock::time_point now) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - now);
    const auto most = std::min(pause_, left);
    pause_ = std::min(pause_ * 2, kLongestPause);
    return most.count() <= 0 ? std::chrono::milliseconds(0)
                             : std::chrono::milliseconds(most.count() / 2 +
                                                         int64_t(random_() % uint64_t(most.count() / 2 + 1)) + 1);
  }

 private:
  const std::chrono::seconds patience_;
  bool is_open_ = false;
  Clock::time_point until_;
  std::chrono::milliseconds pause_{0};
  std::minstd_rand random_{std::random_device{}()};
};

// Until the connection stands again, or why it does not.
awaitable<absl::Status> ReachAgain(Session& session, Watch& watch, Outage& outage) {
  for (;;) {
    const auto pause = outage.NextPause(Outage::Clock::now());
    if (pause.count() > 0) {
      co_await watch.changed.WaitFor(pause);
    }
    if (watch.was_left) {
      co_return absl::CancelledError("left");
    }
    const absl::Status status = co_await session.OpenAgain();
    if (status.code() != absl::StatusCode::kUnavailable || pause.count() == 0) {
      co_return status;
    }
  }
}

}  // namespace

awaitable<void> FeedStandardInput(Session& session, std::string job_id) {
  return FeedInput(session, std::move(job_id));
}

bool HasInput() {
  struct stat status {};
  if (fstat(STDIN_FILENO, &status) != 0) {
    return false;
  }
  if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)) {
    return false;
  }
  return isatty(STDIN_FILENO) == 0 || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

awaitable<absl::StatusOr<proto::CommandReply>> Cancel(Session& session, const std::string& job_id,
                                                      const std::string& request_id) {
  proto::RequestBody body;
  body.mutable_cancel()->set_job_id(job_id);
  if (job_id.empty()) {
    body.mutable_cancel()->set_request_id(request_id);
  }
  CO_ASSIGN_OR_RETURN(auto request, session.Sign(std::move(body)));
  co_return co_await session.Call<proto::SignedRequest, proto::CommandReply>(&Session::Async::Command,
                                                                             std::move(request));
}

awaitable<absl::StatusOr<Followed>> Follow(Session& session, UpdateStream updates, FollowOptions options) {
  std::signal(SIGPIPE, SIG_IGN);
  Followed followed;
  auto watch = std::make_shared<Watch>(session.loop());
  watch->updates = updates;
  watch->job_id = options.job_id;
  watch->request_id = options.request_id;
  if (!options.job_id.empty()) {
    followed.name = JobName(session.target(), session.target().site, options.job_id);
  }
  co_spawn(session.loop(), WatchInterrupt(session, watch, options.cancels_on_interrupt), detached);

  Progress progress(options.again);
  Outage outage(options.patience);
  bool has_ended = false;
  absl::Status status;
  for (;;) {
    proto::Update update;
    while (co_await updates->Read(update)) {
      outage.End();
      switch (update.kind_case()) {
        case proto::Update::kSubmitted:
          watch->job_id = update.submitted().job_id();
          followed.name = JobName(session.target(), update.submitted().site(), watch->job_id);
          if (options.on_submitted) {
            options.on_submitted(update.submitted());
          }
          if (options.feeds_input && !update.submitted().is_repeat() && !update.submitted().dry_run()) {
            co_spawn(session.loop(), FeedInput(session, watch->job_id), detached);
          }
          if (watch->wants_cancel) {
            co_await SendCancel(session, watch);
          }
          break;
        case proto::Update::kEvent:
          progress.Take(update.event());
          if (options.on_event) {
            options.on_event(update.event());
          }
          break;
        case proto::Update::kOutput: {
          const int fd = update.output().stream() == proto::OutputChunk::STDOUT ? STDOUT_FILENO : STDERR_FILENO;
          if (!WriteAll(fd, progress.Take(update.output())) && errno == EPIPE && !watch->wants_cancel) {
            watch->wants_cancel = true;  // our reader has gone, as after `| head`
            co_await SendCancel(session, watch);
          }
          break;
        }
        case proto::Update::kStatus:
          followed.job = update.status();
          has_ended = true;
          break;
        default:
          break;
      }
    }
    status = co_await updates->Finish();
    if (has_ended || watch->was_left || watch->job_id.empty() || !options.again.follow() ||
        status.code() != absl::StatusCode::kUnavailable) {
      break;
    }

    // The link is lost, the job is not.
    if (!outage.is_open()) {
      outage.Begin(Outage::Clock::now());
      fmt::print(stderr, "sekisho: lost the connection to the site; {} goes on, trying for {} s to come back to it\n",
                 followed.name, options.patience.count());
    }
    const absl::Status reached = co_await ReachAgain(session, *watch, outage);
    if (!reached.ok()) {
      status = reached.code() == absl::StatusCode::kCancelled ? status : reached;
      break;
    }
    const proto::AttachRequest again = progress.Again(watch->job_id);
    updates = watch->updates = rpc::Start<rpc::ClientReader<proto::Update>>(
        session.loop(), session.Options(),
        [&](auto& call) { session.stub().async()->Attach(&call.context(), &again, &call); });
    if (watch->wants_cancel && !watch->sent_cancel) {
      co_await SendCancel(session, watch);
    }
  }
  followed.was_interrupted = watch->wants_cancel || watch->was_left;
  followed.was_left = watch->was_left;
  if (watch->wants_cancel && watch->job_id.empty() && !watch->was_left) {
    fmt::print(stderr, "sekisho: nothing was submitted\n");
    followed.job.set_state(proto::CANCELLED);
    co_return followed;
  }
  if (has_ended || (status.ok() && !watch->job_id.empty()) || watch->was_left) {
    co_return followed;
  }
  if (!status.ok() && outage.is_open()) {
    co_return Refuse(absl::StatusCode::kNotFound, GramCode(status),
                     fmt::format("could not come back to {}; its state is not known: {}", followed.name,
                                 Message(status)),
                     fmt::format("ask again: sekisho status {}", followed.name));
  }
  const bool is_broken = status.code() == absl::StatusCode::kUnavailable && !watch->job_id.empty();
  if (is_broken) {
    co_return Refuse(absl::StatusCode::kNotFound, 0,
                     fmt::format("lost the connection to the site; the state of {} is not known: {}",
                                 followed.name, Message(status)),
                     fmt::format("ask again: sekisho status {}", followed.name));
  }
  co_return status.ok() ? absl::InternalError("the site ended the call without a word") : status;
}

}  // namespace sekisho::client
