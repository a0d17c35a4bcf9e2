// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/watch.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "common/caught.h"
#include "common/job_state.h"
#include "common/log.h"
#include "jobmanager/errors.h"

namespace sekisho::jobmanager {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRedialMin{300};
constexpr milliseconds kRedialMax{5'000};

// Of the signed request: which files its client has yet to send (sekisho upload).
void LeaveOnlyFiles(proto::JobEvent::Submitted& submitted) {
  proto::RequestBody asked;
  proto::RequestBody shown;
  if (asked.ParseFromString(submitted.request().body()) && asked.submit().file_size() > 0) {
    shown.mutable_submit()->mutable_file()->Swap(asked.mutable_submit()->mutable_file());
  }
  submitted.clear_request();
  if (shown.has_submit()) {
    submitted.mutable_request()->set_body(shown.SerializeAsString());
  }
}

// Where the output's coroutine puts one chunk, and the writer's takes it.  Both wait on the watcher.
struct Outlet {
  explicit Outlet(std::shared_ptr<Watcher> signal) : watcher(std::move(signal)) {}
  std::shared_ptr<Watcher> watcher;
  std::optional<proto::OutputChunk> chunk;
  QueueServer::OutputCall call;
  bool is_dry = false;  // no more output will come
  bool is_broken = false;
  bool is_over = false;  // nobody takes it any more
};

// However the writer ends: the output's coroutine is told.
struct CloseOutlet {
  std::shared_ptr<Outlet> outlet;
  ~CloseOutlet() {
    outlet->is_over = true;
    if (outlet->call) {
      outlet->call->Cancel();
    }
    outlet->watcher->changed.Notify();
  }
};

// How far each stream has been read.
class Positions {
 public:
  explicit Positions(const proto::AttachRequest& request) {
    for (const auto& position : request.position()) {
      next_[{position.task(), position.stream()}] = position.offset();
    }
  }
  void Advance(const proto::OutputChunk& chunk) {
    next_[{chunk.task(), chunk.stream()}] = chunk.offset() + chunk.data().size();
  }
  void Fill(proto::OutputRequest& request) const {
    for (const auto& [key, offset] : next_) {
      auto& position = *request.add_position();
      position.set_task(key.first);
      position.set_stream(static_cast<proto::OutputChunk::Stream>(key.second));
      position.set_offset(offset);
    }
  }

 private:
  std::map<std::pair<int, int>, uint64_t> next_;
};

// What is on its way to a client that takes nothing fills our memory, up to the window of each call: it is asked for
// in portions, the next when the last has been taken, larger ones as he takes more than what waits on the way to him.
uint64_t PortionAfter(uint64_t taken) { return std::clamp<uint64_t>(taken / 4, 64 << 10, 512 << 10); }

// Survives a broken connection: asks on from where it was.
awaitable<void> PumpOutput(Loop& loop, Jobs& jobs, proto::AttachRequest request,
                           std::shared_ptr<Outlet> outlet) {
  const bool is_inside = co_await jobs.UntilSubmitted(request.job_id());
  Positions positions(request);
  uint64_t all_taken = 0;
  milliseconds redial = kRedialMin;
  while (is_inside && !outlet->is_over) {
    proto::OutputRequest wanted;
    wanted.set_job_id(request.job_id());
    wanted.set_follow(request.follow());
    wanted.set_task(request.task());
    wanted.set_most_bytes(PortionAfter(all_taken));
    positions.Fill(wanted);
    outlet->call = jobs.queue().Output(wanted);
    const auto asked = std::chrono::steady_clock::now();
    uint64_t taken = 0;
    proto::OutputChunk chunk;
    while (!outlet->is_over && co_await outlet->call->Read(chunk)) {
      positions.Advance(chunk);
      taken += chunk.data().size();
      outlet->chunk = std::move(chunk);
      outlet->watcher->changed.Notify();
      while (outlet->chunk && !outlet->is_over) {
        co_await outlet->watcher->changed.Wait();
      }
    }
    const absl::Status status = co_await outlet->call->Finish();
    all_taken += taken;
    if (status.ok() && taken >= wanted.most_bytes()) {
      continue;
    }
    if (status.ok() || IsVerdict(status)) {
      if (!status.ok()) {
        spdlog::debug("no output job={}: {}", request.job_id(), Printable(Message(status)));
      }
      break;
    }
    const bool was_up = taken > 0 || std::chrono::steady_clock::now() - asked > kRedialMax;
    redial = was_up ? kRedialMin : redial;
    co_await Sleep(loop, redial);
    redial = std::min(redial * 2, kRedialMax);
  }
  outlet->call.reset();
  outlet->is_dry = true;
  outlet->watcher->changed.Notify();
}

}  // namespace

awaitable<absl::Status> ShowJob(Loop& loop, Jobs& jobs, rpc::Writer<proto::Update>& writer,
                                proto::AttachRequest request, std::shared_ptr<Watcher> watcher) {
  const std::string id = request.job_id();
  if (!watcher) {
    watcher = std::make_shared<Watcher>(loop);
    watcher->is_behind = true;
    jobs.Watch(id, watcher);
  }
  const auto outlet = std::make_shared<Outlet>(watcher);
  const CloseOutlet close{outlet};
  if (request.output()) {
    co_spawn(loop, PumpOutput(loop, jobs, request, outlet), [outlet, id](const std::exception_ptr& thrown) {
      Logged("the output of job=" + id)(thrown);
      outlet->is_broken = thrown != nullptr;
      outlet->watcher->changed.Notify();
    });
  }

  uint64_t last_row = 0;
  proto::Update update;
  for (;;) {
    if (watcher->is_behind) {
      watcher->is_behind = false;
      CO_ASSIGN_OR_RETURN(auto items, co_await jobs.History(id));
      // What came meanwhile is in both: rows already seen are skipped below.
      watcher->items.insert(watcher->items.begin(), std::make_move_iterator(items.begin()),
                            std::make_move_iterator(items.end()));
    } else if (!watcher->items.empty()) {
      Watcher::Item item = std::move(watcher->items.front());
      watcher->items.pop_front();
      const bool is_wanted = request.after_sequence() == 0 || item.event.sequence() > request.after_sequence();
      if (item.row > last_row && request.events() && is_wanted) {
        *update.mutable_event() = std::move(item.event);
        if (update.event().has_submitted()) {
          LeaveOnlyFiles(*update.mutable_event()->mutable_submitted());
        }
        if (!co_await writer.Write(update)) {
          co_return absl::CancelledError("the client is gone");
        }
      }
      last_row = std::max(last_row, item.row);
    } else if (outlet->chunk) {
      *update.mutable_output() = std::move(*outlet->chunk);
      outlet->chunk.reset();
      watcher->changed.Notify();
      if (!co_await writer.Write(update)) {
        co_return absl::CancelledError("the client is gone");
      }
    } else if (outlet->is_broken) {
      co_return absl::InternalError(kOurFault);
    } else if (watcher->is_withdrawn) {
      co_return errors::NoSuchJob(id);
    } else {
      const proto::JobStatus* job = jobs.book().FindAny(id);
      const bool has_ended = job == nullptr || IsFinal(job->state());
      const bool is_dry = !request.output() || outlet->is_dry;
      if (is_dry && (has_ended || !request.follow())) {
        *update.mutable_status() = job != nullptr ? *job : jobs.book().Status(id, "");
        co_await writer.Write(update);
        co_return absl::OkStatus();
      }
      co_await watcher->changed.Wait();
    }
  }
}

}  // namespace sekisho::jobmanager
