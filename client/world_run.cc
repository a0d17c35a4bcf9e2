// SPDX-License-Identifier: Apache-2.0
#include "client/world_run.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>

#include <fmt/format.h>
#include <asio/signal_set.hpp>

#include "client/exit_code.h"
#include "client/feed_input.h"
#include "client/follow.h"
#include "client/harmless.h"
#include "client/progress.h"
#include "client/site_call.h"
#include "client/tagged_output.h"

namespace sekisho::client {
namespace {

using LeadCall = rpc::ClientDuplex<proto::LeadRequest, proto::LeadUpdate>;
using OutputCall = rpc::ClientReader<proto::Update>;

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPassageLife{7 * 24 * 3600};
constexpr std::chrono::seconds kPatience{60};  // with a site that was lost
constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::milliseconds kLongestPause{2000};

// Which has our input.
int PartOfRankZero(const std::vector<WorldPart>& parts) {
  const auto has_it = [](const WorldPart& part) {
    const std::vector<int>& ranks = part.ranks.ranks;
    return ranks.empty() ? part.ranks.first == 0 : std::count(ranks.begin(), ranks.end(), 0) > 0;
  };
  return int(std::find_if(parts.begin(), parts.end(), has_it) - parts.begin());
}

// What the coroutines of one world share; some may outlive its run.
struct Run {
  Run(Loop& loop, std::vector<WorldPart> parts, WorldOptions options)
      : loop(loop),
        parts(std::move(parts)),
        options(std::move(options)),
        job_ids(this->parts.size()),
        changed(loop) {}

  Loop& loop;
  std::vector<WorldPart> parts;
  WorldOptions options;
  std::string world = "world-" + NewRequestId();
  std::vector<std::string> job_ids;
  const int input_part = PartOfRankZero(parts);
  TaggedOutput tagged;
  Signal changed;
  int outputs_open = 0;
  bool wants_cancel = false;
  bool was_left = false;
  std::shared_ptr<LeadCall> call;

  void Write(int part, const proto::OutputChunk& chunk, std::string_view data) {
    const bool is_error = chunk.stream() == proto::OutputChunk::STDERR;
    const int rank = parts[part].ranks.RankOf(chunk.task());
    const std::string text = options.tags_output
                                 ? tagged.Add(rank, parts[part].site, is_error, data)
                                 : std::string(data);
    std::fwrite(text.data(), 1, text.size(), is_error ? stderr : stdout);
    std::fflush(is_error ? stderr : stdout);
  }
  // Lines that have no end.
  void WriteRest() {
    for (const int stream : {0, 1}) {
      const std::string rest = tagged.Rest(stream);
      std::fwrite(rest.data(), 1, rest.size(), stream == 1 ? stderr : stdout);
      std::fflush(stream == 1 ? stderr : stdout);
    }
  }
};

absl::StatusOr<proto::LeadRequest::Part> SignPart(const Run& run, int number,
                                                  const std::string& leader_key,
                                                  int64_t ready_by_ms) {
  const WorldPart& part = run.parts[number];
  proto::RequestBody submit;
  submit.set_request_id(fmt::format("{}.{}", run.world, number));
  submit.mutable_submit()->set_rsl(part.rsl);
  submit.mutable_submit()->set_has_input(number == run.input_part && run.options.feeds_input);
  proto::Charter& charter = *submit.mutable_submit()->mutable_charter();
  charter.set_world(run.world);
  charter.set_part(number);
  charter.set_parts(int(run.parts.size()));
  charter.set_first_rank(part.ranks.first);
  if (!part.ranks.ranks.empty()) {
    charter.set_first_rank(*std::min_element(part.ranks.ranks.begin(), part.ranks.ranks.end()));
    charter.mutable_rank()->Assign(part.ranks.ranks.begin(), part.ranks.ranks.end());
  }
  charter.set_ranks(run.parts.back().ranks.first + run.parts.back().ranks.count);
  charter.set_leader_key(leader_key);
  charter.set_ready_by_ms(ready_by_ms);
  charter.set_relay(run.options.relay);
  charter.set_relay_site(run.options.relay_site);
  proto::RequestBody passage;
  passage.mutable_passage()->set_world(run.world);
  passage.mutable_passage()->set_leader_key(leader_key);
  passage.mutable_passage()->set_until_ms(NowMs() +
                                          std::chrono::milliseconds(kPassageLife).count());

  proto::LeadRequest::Part signed_part;
  signed_part.set_site(part.site);
  signed_part.set_address(part.session->target().contact.Address());
  signed_part.set_gatekeeper_subject(part.session->gatekeeper_subject());
  signed_part.set_count(part.ranks.count);
  ASSIGN_OR_RETURN(*signed_part.mutable_submit(), part.session->Sign(std::move(submit)));
  ASSIGN_OR_RETURN(*signed_part.mutable_passage(), part.session->Sign(std::move(passage)));
  return signed_part;
}

// Another connection to the site; false: none within the time, or we are leaving.
awaitable<bool> ReachAgain(std::shared_ptr<Run> run, Session& session, Clock::time_point until) {
  for (auto pause = kFirstPause; Clock::now() < until && !run->was_left;
       pause = std::min(2 * pause, kLongestPause)) {
    co_await Sleep(run->loop, pause);
    const absl::Status status = co_await session.OpenAgain();
    if (status.ok()) {
      co_return true;
    }
  }
  co_return false;
}

// Until the part has ended and all its output was written.
awaitable<void> ShowOutput(std::shared_ptr<Run> run, int part) {
  Session& session = *run->parts[part].session;
  proto::AttachRequest attach;
  attach.set_output(true);
  attach.set_follow(true);
  Progress progress(attach);
  Clock::time_point until = Clock::now() + kPatience;
  absl::Status status;
  for (bool is_lost = false; !is_lost;) {
    attach = progress.Again(run->job_ids[part]);
    auto call = rpc::Start<OutputCall>(run->loop, session.Options(), [&](OutputCall& started) {
      session.stub().async()->Attach(&started.context(), &attach, &started);
    });
    proto::Update update;
    bool is_read = co_await call->Read(update);
    while (is_read) {
      until = Clock::now() + kPatience;
      if (update.has_output()) {
        run->Write(part, update.output(), progress.Take(update.output()));
      }
      is_read = co_await call->Read(update);
    }
    status = co_await call->Finish();
    if (status.code() != absl::StatusCode::kUnavailable) {
      break;
    }
    const bool is_there = co_await ReachAgain(run, session, until);
    is_lost = !is_there;
  }
  if (!status.ok()) {
    fmt::print(stderr, "sekisho: output of {} is cut off: {}\n", run->parts[part].site,
               Harmless(Message(status)));
  }
  --run->outputs_open;
  run->changed.Notify();
}

awaitable<void> CancelPart(std::shared_ptr<Run> run, int part) {
  const auto reply = co_await Cancel(*run->parts[part].session, run->job_ids[part]);
  if (!reply.ok() && reply.status().code() != absl::StatusCode::kFailedPrecondition) {
    fmt::print(stderr, "sekisho: could not cancel at {}: {}\n", run->parts[part].site,
               Harmless(Message(reply.status())));
  }
}

void CancelAll(const std::shared_ptr<Run>& run) {
  for (int part = 0; part < int(run->parts.size()); ++part) {
    if (!run->job_ids[part].empty()) {
      co_spawn(run->loop, CancelPart(run, part), detached);
    }
  }
}

awaitable<void> WatchInterrupt(std::shared_ptr<Run> run) {
  asio::signal_set signals(run->loop, SIGINT, SIGTERM);
  for (;;) {
    const auto [error, signal] = co_await signals.async_wait(kAsTuple);
    if (error) {
      co_return;
    }
    if (run->wants_cancel) {
      run->was_left = true;
      run->call->Cancel();
      run->changed.Notify();
      co_return;
    }
    run->wants_cancel = true;
    fmt::print(stderr, "sekisho: cancelling; Ctrl-C again leaves without waiting\n");
    CancelAll(run);
  }
}

void OnSubmitted(const std::shared_ptr<Run>& run, const proto::LeadUpdate::Submitted& submitted) {
  const int part = submitted.part();
  if (part < 0 || part >= int(run->parts.size()) || !run->job_ids[part].empty()) {
    return;
  }
  run->job_ids[part] = submitted.job_id();
  if (run->options.is_verbose || run->options.is_batch) {
    fmt::print(run->options.is_batch ? stdout : stderr, "{}\n",
               JobName(run->parts[part].session->target(), submitted.site(), submitted.job_id()));
    std::fflush(stdout);
  }
  if (run->options.is_batch) {
    return;
  }
  ++run->outputs_open;
  co_spawn(run->loop, ShowOutput(run, part), detached);
  if (part == run->input_part && run->options.feeds_input) {
    co_spawn(run->loop, FeedInput(*run->parts[part].session, submitted.job_id()), detached);
  }
  if (run->wants_cancel) {
    co_spawn(run->loop, CancelPart(run, part), detached);
  }
}

int EndCode(const Run& run, const proto::WorldEnded& ended) {
  if (ended.reason().empty()) {
    return ended.exit().code();
  }
  proto::JobStatus status;
  status.set_state(ended.state());
  *status.mutable_exit() = ended.exit();
  status.set_reason(ended.reason());
  status.set_remedy(ended.remedy());
  status.set_gram_code(ended.gram_code());
  if (run.wants_cancel) {
    return kExitCancelled;
  }
  fmt::print(stderr, "sekisho: {}\n", Harmless(ended.reason()));
  if (!ended.remedy().empty()) {
    fmt::print(stderr, "  -> {}\n", Harmless(ended.remedy()));
  }
  return ExitCodeOf(status);
}

// Asks the first part's site for a leader; or for its news, if it leads this world already.
void DialLeader(Run& run) {
  Session& first = *run.parts.front().session;
  run.call = rpc::Start<LeadCall>(run.loop, first.Options(), [&](LeadCall& started) {
    first.stub().async()->Lead(&started.context(), &started);
  });
  proto::LeadRequest request;
  request.mutable_prepare()->set_world(run.world);
  run.call->Push(std::move(request));
}

// Signs the parts, with the leader's name in them.  From then on it leads also without us.
awaitable<absl::Status> Begin(std::shared_ptr<Run> run) {
  proto::LeadUpdate update;
  const bool is_read = co_await run->call->Read(update);
  if (!is_read || !update.has_prepared()) {
    const absl::Status status = co_await run->call->Finish();
    co_return status.ok() ? absl::InternalError("the site names no leader") : status;
  }
  const int64_t ready_by_ms =
      NowMs() + std::chrono::milliseconds(run->options.ready_within).count();
  proto::LeadRequest begin;
  for (int part = 0; part < int(run->parts.size()); ++part) {
    CO_ASSIGN_OR_RETURN(*begin.mutable_begin()->add_part(),
                        SignPart(*run, part, update.prepared().leader_key(), ready_by_ms));
  }
  run->call->Push(std::move(begin));
  co_return absl::OkStatus();
}

bool AreAllSubmitted(const Run& run) {
  return std::none_of(run.job_ids.begin(), run.job_ids.end(), std::mem_fn(&std::string::empty));
}

// One call's news.  How the world ended, if that was among it; else how the call did.
awaitable<absl::StatusOr<proto::WorldEnded>> Hear(std::shared_ptr<Run> run) {
  proto::LeadUpdate update;
  for (bool is_read = true; is_read;) {
    is_read = co_await run->call->Read(update);
    if (!is_read) {
      break;
    }
    if (update.has_submitted()) {
      OnSubmitted(run, update.submitted());
      if (run->options.is_batch && AreAllSubmitted(*run)) {
        co_return proto::WorldEnded();
      }
    } else if (update.has_waiting() && size_t(update.waiting().part()) < run->parts.size()) {
      fmt::print(stderr, "sekisho: {} waits: {}\n", run->parts[update.waiting().part()].site,
                 Harmless(update.waiting().reason()));
    } else if (update.has_released() && run->options.is_verbose) {
      fmt::print(stderr, "sekisho: all ranks stand ready and are released\n");
    } else if (update.has_ended()) {
      co_return update.ended();
    } else if (update.has_prepared()) {
      co_return absl::NotFoundError("its leader does not know it any more: it has ended meanwhile");
    }
  }
  const absl::Status status = co_await run->call->Finish();
  co_return status.ok() ? absl::InternalError("the leader ended the call without a word") : status;
}

// How the world ended, also if its leader is away for a while.
awaitable<absl::StatusOr<proto::WorldEnded>> HearToTheEnd(std::shared_ptr<Run> run) {
  for (bool is_first = true;; is_first = false) {
    const auto ended = co_await Hear(run);
    if (ended.ok() || run->was_left || ended.status().code() != absl::StatusCode::kUnavailable) {
      co_return ended;
    }
    if (is_first) {
      fmt::print(stderr,
                 "sekisho: lost the connection to the leader; {} goes on, trying for {} s to come "
                 "back to it\n",
                 run->world, kPatience.count());
    }
    const bool is_there =
        co_await ReachAgain(run, *run->parts.front().session, Clock::now() + kPatience);
    if (!is_there) {
      co_return ended;
    }
    DialLeader(*run);
  }
}

}  // namespace

awaitable<int> RunWorld(std::vector<WorldPart> parts, WorldOptions options) {
  auto run =
      std::make_shared<Run>(parts.front().session->loop(), std::move(parts), std::move(options));
  std::signal(SIGPIPE, SIG_IGN);
  DialLeader(*run);
  const absl::Status begun = co_await Begin(run);
  if (!begun.ok()) {
    co_return Report(begun);
  }
  co_spawn(run->loop, WatchInterrupt(run), detached);

  const auto ended = co_await HearToTheEnd(run);
  if (run->was_left) {
    fmt::print(stderr, "sekisho: left; {} is being cancelled\n", run->world);
    co_return kExitCancelled;
  }
  if (!ended.ok()) {
    co_return Report(ended.status());
  }
  while (run->outputs_open > 0 && !run->was_left) {
    co_await run->changed.Wait();
  }
  run->WriteRest();
  co_return EndCode(*run, *ended);
}

}  // namespace sekisho::client
