// SPDX-License-Identifier: Apache-2.0
#include "client/world/world_output.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "client/job/progress.h"
#include "client/site/harmless.h"
#include "client/site/reach_again.h"

namespace sekisho::client {
namespace {

using OutputCall = rpc::ClientReader<proto::Update>;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};  // with a site that was lost

void WriteTo(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

}  // namespace

void WorldOutput::Write(int part, const proto::OutputChunk& chunk, std::string_view data) {
  const bool is_error = chunk.stream() == proto::OutputChunk::STDERR;
  std::FILE* const stream = is_error ? stderr : stdout;
  written_ = Clock::now();
  const int rank = parts_[part].ranks.RankOf(chunk.task());
  if (reader_) {
    reader_(rank, is_error, data);
  } else if (tags_) {
    WriteTo(stream, tagged_.Add(rank, parts_[part].site, is_error, data));
  } else {
    WriteTo(stream, data);
  }
}

void WorldOutput::WriteRest() {
  WriteTo(stdout, tagged_.Rest(0));
  WriteTo(stderr, tagged_.Rest(1));
}

awaitable<void> WorldOutput::Show(std::shared_ptr<WorldOutput> self, int part, std::string job_id) {
  self->shown_.insert(part);
  Session& session = *self->parts_[part].session;
  proto::AttachRequest attach;
  attach.set_output(true);
  attach.set_follow(true);
  Progress progress(attach);
  Outage outage(kPatience);
  absl::Status status;
  for (bool is_lost = false; !is_lost;) {
    attach = progress.Again(job_id);
    auto call = rpc::Start<OutputCall>(session.loop(), session.Options(), [&](OutputCall& started) {
      session.stub().async()->Attach(&started.context(), &attach, &started);
    });
    proto::Update update;
    bool is_read = co_await call->Read(update);
    while (is_read) {
      outage.End();
      if (update.has_output()) {
        self->Write(part, update.output(), progress.Take(update.output()));
      }
      is_read = co_await call->Read(update);
    }
    status = co_await call->Finish();
    if (status.code() != absl::StatusCode::kUnavailable) {
      break;
    }
    outage.Begin(Clock::now());
    const absl::Status reached = co_await ReachAgain(session, outage, status, self->was_left_, self->changed_);
    is_lost = !reached.ok();
  }
  if (!status.ok()) {
    fmt::print(stderr, "sekisho: output of {} is cut off: {}\n", self->parts_[part].site,
               Harmless(Message(status)));
  }
  self->shown_.erase(part);
  self->changed_.Notify();
}

awaitable<void> WorldOutput::Wait(std::chrono::seconds silence_most) {
  const Clock::time_point since = Clock::now();
  while (!shown_.empty() && !was_left_) {
    const auto left = std::max(since, written_) + silence_most - Clock::now();
    if (left <= Clock::duration::zero()) {
      break;
    }
    co_await changed_.WaitFor(std::chrono::ceil<std::chrono::milliseconds>(left));
  }
  for (const int part : shown_) {
    if (!was_left_) {
      fmt::print(stderr, "sekisho: output of {} is cut off: it has not said a word for {} s\n", parts_[part].site,
                 silence_most.count());
    }
  }
}

}  // namespace sekisho::client
