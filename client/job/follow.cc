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
#include "client/job/submitted.h"
#include "client/site/harmless.h"
#include "client/site/reach_again.h"
#include "common/write_all.h"

namespace sekisho::client {
namespace {

bool WriteEach(const std::set<int>& fds, std::string_view data) {
  return std::all_of(fds.begin(), fds.end(), [&](int fd) { return WriteAll(fd, data); });
}

using UpdateStream = std::shared_ptr<rpc::ClientReader<proto::Update>>;

// The state that a follower shares with its Ctrl-C watcher.
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

// Ctrl-C is its own again when the follower has done, whatever still holds the watch.
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
    co_spawn(session.loop(), SendCancel(session, watch), Logged("the cancel"));  // the next is heard meanwhile
  }
}

class Follower {
 public:
  Follower(Session& session, FollowOptions options);
  awaitable<absl::StatusOr<Followed>> Run();

 private:
  UpdateStream Open();
  awaitable<absl::Status> Read();
  awaitable<void> Take(const proto::Update& update);
  bool MayComeBack(const absl::Status& lost) const;
  awaitable<absl::Status> ComeBack(absl::Status lost);
  absl::StatusOr<Followed> Left(const absl::Status& status);

  bool is_unanswered() const { return watch_->job_id.empty(); }

  Session& session_;
  const FollowOptions options_;
  const std::shared_ptr<Watch> watch_;
  const StopWatching stop_watching_{watch_->signals};
  Progress progress_;
  Outage outage_;
  Followed followed_;
  bool has_ended_ = false, is_enough_ = false;
  bool was_sent_again_ = false;  // the submission
};

Follower::Follower(Session& session, FollowOptions options)
    : session_(session), options_(std::move(options)), watch_(std::make_shared<Watch>(session.loop())),
      progress_(options_.wanted), outage_(options_.patience) {
  watch_->job_id = options_.job_id;
  watch_->request_id = options_.request_id;
  if (!options_.job_id.empty()) {
    followed_.name = JobName(session.target(), session.target().site, options_.job_id);
  }
}

awaitable<absl::StatusOr<Followed>> Follower::Run() {
  co_spawn(session_.loop(), WatchInterrupt(session_, watch_, options_.cancels_on_interrupt),
           Vital("Ctrl-C"));
  for (;;) {
    watch_->updates = Open();
    if (watch_->wants_cancel && !watch_->sent_cancel) {
      co_await SendCancel(session_, watch_);
    }
    absl::Status status = co_await Read();
    if (MayComeBack(status)) {
      const absl::Status reached = co_await ComeBack(status);
      if (reached.ok() && MayComeBack(status)) {
        continue;
      }
      status = reached.ok() || absl::IsCancelled(reached) ? status : reached;
    }
    co_return Left(status);
  }
}

UpdateStream Follower::Open() {
  const proto::AttachRequest attach = progress_.Again(watch_->job_id);  // read when the call starts, after the lambda
  return rpc::Start<rpc::ClientReader<proto::Update>>(session_.loop(), session_.Options(), [&](auto& call) {
    if (is_unanswered()) {
      session_.stub().async()->Run(&call.context(), &*options_.submission, &call);
    } else {
      session_.stub().async()->Attach(&call.context(), &attach, &call);
    }
  });
}

// Until the stream ends, however it does.
awaitable<absl::Status> Follower::Read() {
  proto::Update update;
  while (co_await watch_->updates->Read(update)) {
    outage_.End();
    co_await Take(update);
    update.Clear();
  }
  co_return co_await watch_->updates->Finish();
}

awaitable<void> Follower::Take(const proto::Update& update) {
  switch (update.kind_case()) {
    case proto::Update::kSubmitted: {
      const proto::SubmitReply& reply = update.submitted();
      watch_->job_id = reply.job_id();
      followed_.name = JobName(session_.target(), reply.site(), reply.job_id());
      if (options_.on_submitted) {
        options_.on_submitted(reply);
      }
      // Of a repeat that is not ours, another command feeds it.
      if (options_.feeds_input && (!reply.is_repeat() || was_sent_again_) && !reply.dry_run()) {
        co_spawn(session_.loop(), FeedInput(session_, reply.job_id()), Vital("the job's input"));
      }
      if (watch_->wants_cancel) {
        co_await SendCancel(session_, watch_);
      }
      break;
    }
    case proto::Update::kEvent:
      progress_.Take(update.event());
      if (options_.on_event && !options_.on_event(update.event())) {
        is_enough_ = true;
        watch_->updates->Cancel();
      }
      break;
    case proto::Update::kOutput: {
      const size_t stream = update.output().stream() == proto::OutputChunk::STDOUT ? 0 : 1;
      if (!WriteEach(options_.shown[stream], progress_.Take(update.output())) && errno == EPIPE && !watch_->wants_cancel) {
        watch_->wants_cancel = true;  // our reader has gone, as after `| head`
        co_await SendCancel(session_, watch_);
      }
      break;
    }
    case proto::Update::kStatus:
      followed_.job = update.status();
      has_ended_ = true;
      break;
    default:
      break;
  }
}

bool Follower::MayComeBack(const absl::Status& lost) const {
  if (has_ended_ || is_enough_ || watch_->was_left) {
    return false;
  }
  // Nobody submits what is to be cancelled.
  return is_unanswered() ? IsLost(lost) && !watch_->wants_cancel
                         : lost.code() == absl::StatusCode::kUnavailable && options_.wanted.follow();
}

// The link is lost, the job is not.
awaitable<absl::Status> Follower::ComeBack(absl::Status lost) {
  if (outage_.Begin(Outage::Clock::now())) {
    if (is_unanswered()) {
      SayUnanswered(session_.Explain(lost), options_.patience);
    } else {
      SayLost(followed_.name, options_.patience);
    }
  }
  was_sent_again_ = is_unanswered();
  co_return co_await ReachAgain(session_, outage_, std::move(lost), watch_->was_left, watch_->changed);
}

absl::StatusOr<Followed> Follower::Left(const absl::Status& status) {
  followed_.was_interrupted = watch_->wants_cancel || watch_->was_left;
  followed_.was_left = watch_->was_left;
  if (has_ended_ || is_enough_ || watch_->was_left) {
    return followed_;
  }
  if (is_unanswered()) {
    if (IsLost(status) || outage_.is_open()) {
      return StillUnknown(session_.Explain(status), options_.request_id);
    }
    if (watch_->wants_cancel) {
      fmt::print(stderr, "sekisho: nothing was submitted\n");
      followed_.job.set_state(proto::CANCELLED);
      return followed_;
    }
    return status.ok() ? absl::InternalError("the site ended the call without a word") : status;
  }
  if (status.ok()) {
    return followed_;
  }
  const std::string remedy = fmt::format("ask again: sekisho status {}", followed_.name);
  if (outage_.is_open()) {
    return NotReachedAgain(followed_.name, status, remedy);
  }
  if (status.code() != absl::StatusCode::kUnavailable) {
    return status;
  }
  return Refuse(absl::StatusCode::kNotFound, 0,
                fmt::format("lost the connection to the site; the state of {} is not known: {}", followed_.name, Message(status)),
                remedy);
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

awaitable<absl::StatusOr<Followed>> Follow(Session& session, FollowOptions options) {
  std::signal(SIGPIPE, SIG_IGN);
  Follower follower(session, std::move(options));
  co_return co_await follower.Run();
}

}  // namespace sekisho::client
