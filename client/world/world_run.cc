// SPDX-License-Identifier: Apache-2.0
#include "client/world/world_run.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <asio/signal_set.hpp>

#include "client/job/feed_input.h"
#include "client/job/follow.h"
#include "client/job/upload.h"
#include "client/site/exit_code.h"
#include "client/site/harmless.h"
#include "client/site/reach_again.h"
#include "client/site/site_call.h"
#include "client/world/world_output.h"
#include "client/world/world_sign.h"
#include "common/part_name.h"

namespace sekisho::client {
namespace {

using LeadCall = rpc::ClientDuplex<proto::LeadRequest, proto::LeadUpdate>;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};  // with a leader that was lost, and output of a program that ended well
constexpr std::chrono::seconds kLastWords{5};  // of a part whose world has failed, maybe because it is out of reach

// Which has our input.
int PartOfRankZero(const std::vector<WorldPart>& parts) {
  return int(std::find_if(parts.begin(), parts.end(), [](const WorldPart& part) {
               return !part.ranks.is_independent && part.ranks.Has(0);
             }) - parts.begin());
}

// What the coroutines of one world share; some may outlive its run.
struct Run {
  Run(Session& leader, std::string world, std::vector<WorldPart> parts, WorldOptions options)
      : loop(leader.loop()),
        leader(leader),
        world(std::move(world)),
        parts(std::move(parts)),
        options(std::move(options)),
        job_ids(this->parts.size()),
        output(loop, this->parts, was_left, this->options.tags_output),
        uploaded(loop) {}

  Loop& loop;
  Session& leader;
  const std::string world;
  std::vector<WorldPart> parts;
  WorldOptions options;
  std::vector<std::string> job_ids;
  std::set<int> dropped;  // parts that the world goes on without
  std::set<std::string> warned;
  const int input_part = PartOfRankZero(parts);
  std::optional<asio::signal_set> signals;  // while it is attended
  bool wants_cancel = false;
  bool is_enough = false;  // was read
  bool was_left = false;
  WorldOutput output;
  int uploads = 0;      // that go on
  int upload_code = 0;  // of the first that failed
  std::shared_ptr<TransferBar> bar = std::make_shared<TransferBar>(true);
  Signal uploaded;
  std::shared_ptr<LeadCall> call;

  const std::string& LeaderSite() const {
    return leader.target().site.empty() ? parts.front().site : leader.target().site;
  }
  // It goes on without us.
  bool IsLeftSoon() const { return options.is_batch || options.is_held; }
};

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
      co_spawn(run->loop, CancelPart(run, part), Logged("the cancel at " + run->parts[part].site));
    }
  }
}

awaitable<void> WatchInterrupt(std::shared_ptr<Run> run) {
  run->signals.emplace(run->loop, SIGINT, SIGTERM);
  for (;;) {
    const auto [error, signal] = co_await run->signals->async_wait(kAsTuple);
    if (error) {
      co_return;
    }
    if (run->wants_cancel) {
      run->was_left = true;
      run->call->Cancel();
      run->output.Wake();
      run->uploaded.Notify();
      co_return;
    }
    run->wants_cancel = true;
    fmt::print(stderr, "sekisho: cancelling; Ctrl-C again leaves without waiting\n");
    CancelAll(run);
  }
}

// What cannot be sent ends the part, and so the world.
awaitable<void> SendFiles(std::shared_ptr<Run> run, int part) {
  const WorldPart& own = run->parts[part];
  const UploadOptions options{.reopens = run->IsLeftSoon(), .bar = run->bar};
  const int code = co_await UploadOrCancel(*own.session, run->job_ids[part], own.files, options);
  run->upload_code = run->upload_code != 0 ? run->upload_code : code;
  --run->uploads;
  run->uploaded.Notify();
}

void OnSubmitted(const std::shared_ptr<Run>& run, const proto::LeadUpdate::Submitted& submitted) {
  const int part = submitted.part();
  if (part < 0 || part >= int(run->parts.size()) || !run->job_ids[part].empty() ||
      run->parts[part].session == nullptr) {
    return;
  }
  run->job_ids[part] = submitted.job_id();
  if (run->options.is_verbose || run->options.is_batch) {
    fmt::print(run->options.is_batch ? stdout : stderr, "{}\n",
               JobName(run->parts[part].session->target(), submitted.site(), submitted.job_id()));
    std::fflush(stdout);
  }
  if (!run->parts[part].files.empty()) {
    ++run->uploads;
    co_spawn(run->loop, SendFiles(run, part), Vital("sending files"));
  }
  if (run->wants_cancel) {
    co_spawn(run->loop, CancelPart(run, part), Logged("the cancel at " + run->parts[part].site));
  }
  if (run->IsLeftSoon()) {
    return;
  }
  co_spawn(
      run->loop,
      WorldOutput::Show(std::shared_ptr<WorldOutput>(run, &run->output), part, submitted.job_id()),
      Vital("the ranks' output"));
  if (part == run->input_part && run->options.feeds_input) {
    co_spawn(run->loop, FeedInput(*run->parts[part].session, submitted.job_id()), Vital("the program's input"));
  }
}

// What is read goes to the caller, until that has enough.
void ReadOutput(const std::shared_ptr<Run>& run) {
  run->output.set_reader([weak = std::weak_ptr<Run>(run)](int rank, bool is_error, std::string_view data) {
    const auto run = weak.lock();
    if (run != nullptr && run->options.reads(rank, is_error, data) && !run->is_enough) {
      run->is_enough = true;
      CancelAll(run);
    }
  });
}

int EndCode(const Run& run, const proto::WorldEnded& ended) {
  if (run.is_enough && !run.wants_cancel) {
    return 0;
  }
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

// Asks the site for a leader; or for its news, if it leads this world already.
std::shared_ptr<LeadCall> DialLeader(Session& leader, const std::string& world) {
  auto call = rpc::Start<LeadCall>(leader.loop(), leader.Options(), [&](LeadCall& started) {
    leader.stub().async()->Lead(&started.context(), &started);
  });
  proto::LeadRequest request;
  request.mutable_prepare()->set_world(world);
  call->Push(std::move(request));
  return call;
}

// Signs the parts, with the leader's name in them.  From then on it leads also without us.
awaitable<absl::Status> Begin(std::shared_ptr<Run> run) {
  proto::LeadUpdate update;
  const bool is_read = co_await run->call->Read(update);
  if (!is_read || !update.has_prepared()) {
    const absl::Status status = co_await run->call->Finish();
    co_return status.ok() ? absl::InternalError("the site names no leader") : status;
  }
  proto::Charter charter;
  charter.set_world(run->world);
  charter.set_parts(int(run->parts.size()));
  charter.set_leader_key(update.prepared().leader_key());
  charter.set_ready_by_ms(NowMs() + std::chrono::milliseconds(run->options.ready_within).count());
  charter.set_encrypt(run->options.encrypts);
  charter.mutable_speaker()->insert(run->options.speakers.begin(), run->options.speakers.end());
  int ranks_of_all = 0;
  for (const WorldPart& part : run->parts) {
    ranks_of_all += part.ranks.is_independent ? 0 : part.ranks.count;
  }
  proto::LeadRequest begin;
  begin.mutable_begin()->set_hold(run->options.is_held);
  for (const WorldPart& part : run->parts) {
    const int number = begin.begin().part_size();
    const bool is_independent = part.ranks.is_independent;
    charter.set_part(number);
    charter.set_independent(is_independent);
    charter.set_ranks(is_independent ? part.ranks.count : ranks_of_all);
    charter.set_relay(is_independent ? "" : run->options.relay);
    charter.set_relay_site(is_independent ? "" : run->options.relay_site);
    charter.set_first_rank(part.ranks.first);
    const std::vector<int>& ranks = part.ranks.ranks;
    if (!ranks.empty()) {
      charter.set_first_rank(*std::min_element(ranks.begin(), ranks.end()));
      charter.mutable_rank()->Assign(ranks.begin(), ranks.end());
    }
    charter.set_start(part.start);
    charter.set_label(part.ranks.label);
    CO_ASSIGN_OR_RETURN(*begin.mutable_begin()->add_part(),
                        SignPart(part, charter, number == run->input_part && run->options.feeds_input));
  }
  run->call->Push(std::move(begin));
  co_return absl::OkStatus();
}

// Ranks are numbered without the parts that were dropped.
void Renumber(Run& run, const proto::LeadUpdate::Released& released) {
  for (int part = 0; part < std::min(released.first_rank_size(), int(run.parts.size())); ++part) {
    run.parts[part].ranks.first = std::max(released.first_rank(part), 0);
  }
}

void OnDropped(Run& run, const proto::LeadUpdate::Dropped& dropped) {
  run.dropped.insert(dropped.part());
  if (size_t(dropped.part()) < run.parts.size()) {
    const WorldPart& part = run.parts[dropped.part()];
    fmt::print(stderr, "sekisho: without {}, {} ranks at {}: {}\n",
               Harmless(PartName(dropped.part(), part.ranks.label)), part.ranks.count, part.site,
               Harmless(dropped.reason()));
  }
}

// A leader that is reached again says all anew.
void OnWarning(Run& run, const proto::LeadUpdate::Warning& warning) {
  if (run.warned.insert(warning.text()).second) {
    fmt::print(stderr, "sekisho: warning: {}\n", Harmless(warning.text()));
    if (!warning.remedy().empty()) {
      fmt::print(stderr, "  -> {}\n", Harmless(warning.remedy()));
    }
  }
}

// Or dropped, before they were.
bool AreAllSubmitted(const Run& run) {
  for (int part = 0; part < int(run.parts.size()); ++part) {
    if (run.job_ids[part].empty() && run.dropped.count(part) == 0) {
      return false;
    }
  }
  return true;
}

// One call's news.  How the world ended, if that was among it; else how the call did.
awaitable<absl::StatusOr<proto::WorldEnded>> Hear(std::shared_ptr<Run> run, Outage& outage) {
  proto::LeadUpdate update;
  for (bool is_read = true; is_read;) {
    is_read = co_await run->call->Read(update);
    if (!is_read) {
      break;
    }
    outage.End();
    if (update.has_submitted()) {
      OnSubmitted(run, update.submitted());
    } else if (update.has_waiting() && size_t(update.waiting().part()) < run->parts.size()) {
      const WorldPart& part = run->parts[update.waiting().part()];
      const std::string& label = part.ranks.label;
      fmt::print(stderr, "sekisho: {}{} waits: {}\n", Harmless(label.empty() ? "" : label + " at "), part.site,
                 Harmless(update.waiting().reason()));
    } else if (update.has_released()) {
      Renumber(*run, update.released());
      if (run->options.is_verbose) {
        fmt::print(stderr, "sekisho: all ranks stand ready and are released\n");
      }
    } else if (update.has_dropped()) {
      OnDropped(*run, update.dropped());
    } else if (update.has_warning()) {
      OnWarning(*run, update.warning());
    } else if (update.has_ended()) {
      co_return update.ended();
    } else if (update.has_prepared()) {
      co_return absl::NotFoundError("its leader does not know it any more: it has ended meanwhile");
    }
    if (run->IsLeftSoon() && !run->wants_cancel && AreAllSubmitted(*run)) {
      co_return proto::WorldEnded();
    }
  }
  const absl::Status status = co_await run->call->Finish();
  co_return status.ok() ? absl::InternalError("the leader ended the call without a word") : status;
}

// Its leader's site may be dead, or only our way to it: so what runs elsewhere is left to the user to end.
absl::Status LeaderNotReachedAgain(const Run& run, const absl::Status& why) {
  std::string jobs;
  for (size_t part = 0; part < run.parts.size(); ++part) {
    if (!run.job_ids[part].empty() && run.parts[part].site != run.LeaderSite()) {
      jobs += ' ';
      jobs += JobName(run.parts[part].session->target(), run.parts[part].site, run.job_ids[part]);
    }
  }
  return NotReachedAgain(fmt::format("the leader of {} at {}", run.world, run.LeaderSite()), why,
                         jobs.empty() ? "ask again: sekisho list" : "to end what runs at other sites: sekisho cancel" + jobs);
}

// How the world ended, also if its leader is away for a while.
awaitable<absl::StatusOr<proto::WorldEnded>> HearToTheEnd(std::shared_ptr<Run> run) {
  Outage outage(kPatience);
  for (;;) {
    const auto ended = co_await Hear(run, outage);
    if (ended.ok() || run->was_left || ended.status().code() != absl::StatusCode::kUnavailable) {
      co_return ended;
    }
    if (outage.Begin(Clock::now())) {
      fmt::print(stderr,
                 "sekisho: lost the connection to the leader at {}; {} goes on, trying for {} s to come back to it\n",
                 run->LeaderSite(), run->world, kPatience.count());
    }
    const absl::Status reached =
        co_await ReachAgain(run->leader, outage, ended.status(), run->was_left, run->uploaded);
    if (!reached.ok()) {
      co_return LeaderNotReachedAgain(*run, ended.status());
    }
    run->call = DialLeader(run->leader, run->world);
  }
}

awaitable<int> ToTheEnd(std::shared_ptr<Run> run) {
  const auto ended = co_await HearToTheEnd(run);
  if (run->was_left) {
    fmt::print(stderr, "sekisho: left; {} is being cancelled\n", run->world);
    co_return kExitCancelled;
  }
  if (!ended.ok()) {
    co_return Report(ended.status());
  }
  while (run->IsLeftSoon() && run->uploads > 0 && !run->was_left) {
    co_await run->uploaded.Wait();
  }
  if (run->IsLeftSoon() && run->wants_cancel) {
    co_return kExitCancelled;
  }
  const auto patience = ended->reason().empty() ? kPatience : kLastWords;
  co_await run->output.Wait(patience);
  run->output.WriteRest();
  const int code = EndCode(*run, *ended);
  co_return code != 0 ? code : run->upload_code;
}

// To the world's end, or until it is left alone; files and output are part of it, and Ctrl-C is heard in them.
awaitable<int> Attend(std::shared_ptr<Run> run) {
  co_spawn(run->loop, WatchInterrupt(run), Vital("Ctrl-C"));
  const int code = co_await ToTheEnd(run);
  if (run->signals) {
    run->signals->clear();
    run->signals->cancel();
  }
  co_return code;
}

}  // namespace

struct Preparation {
  Session* leader = nullptr;
  std::string world;
  std::shared_ptr<LeadCall> call;  // ends with its last handle
};

std::shared_ptr<Preparation> PrepareLeader(Session& leader) {
  auto prepared = std::make_shared<Preparation>();
  prepared->leader = &leader;
  prepared->world = "world-" + NewRequestId();
  prepared->call = DialLeader(leader, prepared->world);
  return prepared;
}

awaitable<int> RunWorld(std::vector<WorldPart> parts, WorldOptions options) {
  Session& leader = *parts.front().session;
  std::shared_ptr<Preparation> prepared = std::move(options.prepared);
  if (prepared == nullptr || prepared->leader != &leader) {
    prepared = PrepareLeader(leader);
  }
  auto run = std::make_shared<Run>(leader, prepared->world, std::move(parts), std::move(options));
  run->call = std::move(prepared->call);
  std::signal(SIGPIPE, SIG_IGN);
  if (run->options.reads) {
    ReadOutput(run);
  }
  const absl::Status begun = co_await Begin(run);
  if (!begun.ok()) {
    co_return Report(begun);
  }
  const int code = co_await Attend(run);
  if (code == 0 && run->options.is_held) {
    fmt::print("{}\n", JobName(leader.target(), run->parts.front().site, run->world));
  }
  co_return code;
}

awaitable<int> FollowWorld(Session& leader, std::string world, std::vector<WorldPart> parts,
                           WorldOptions options) {
  auto run = std::make_shared<Run>(leader, std::move(world), std::move(parts), std::move(options));
  std::signal(SIGPIPE, SIG_IGN);
  run->call = DialLeader(leader, run->world);
  co_return co_await Attend(run);
}

}  // namespace sekisho::client
