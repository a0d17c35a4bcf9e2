// SPDX-License-Identifier: Apache-2.0
#include "client/job/follow.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <asio/signal_set.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "client/job/feed_input.h"
#include "client/job/progress.h"
#include "client/site/harmless.h"
#include "client/site/reach_again.h"

namespace sekisho::client {
namespace {

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

bool WriteEach(const std::set<int>& fds, std::string_view data) {
  return std::all_of(fds.begin(), fds.end(), [&](int fd) { return WriteAll(fd, data); });
}

// The state that Follow shares with its Ctrl-C watcher.
struct Watch {
  explicit Watch(Loop& loop) : signals(loop, SIGINT, SIGTERM), changed(loop) {}
  asio::signal_set signals;
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

// Ctrl-C is its own again when Follow has done, whatever still holds the watch.
struct StopWatching {
  ~StopWatching() {
    std::error_code ignored;
    signals.clear(ignored);
    signals.cancel(ignored);
  }
  asio::signal_set& signals;
};

awaitable<void> WatchInterrupt(Session& session, std::shared_ptr<Watch> watch, bool cancels) {
  for (;;) {
    const auto [error, signal] = co_await watch->signals.async_wait(kAsTuple);
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

}  // namespace

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
  const StopWatching stop_watching{watch->signals};
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
          const size_t stream = update.output().stream() == proto::OutputChunk::STDOUT ? 0 : 1;
          if (!WriteEach(options.shown[stream], progress.Take(update.output())) && errno == EPIPE && !watch->wants_cancel) {
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
    if (outage.Begin(Outage::Clock::now())) {
      SayLost(followed.name, options.patience);
    }
    const absl::Status reached = co_await ReachAgain(session, outage, status, watch->was_left, watch->changed);
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
    co_return NotReachedAgain(followed.name, status, fmt::format("ask again: sekisho status {}", followed.name));
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
