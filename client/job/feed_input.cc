// SPDX-License-Identifier: Apache-2.0
#include "client/job/feed_input.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <semaphore>
#include <thread>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "client/job/unsent_input.h"
#include "client/site/harmless.h"

namespace sekisho::client {
namespace {

constexpr size_t kInputBytes = 64 * 1024;
constexpr uint64_t kInputKeptMost = 4 << 20;  // sent, and not yet known to be taken
constexpr std::chrono::milliseconds kInputProbeAfter{5'000};
constexpr std::chrono::milliseconds kInputPauseMost{3'000};

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

}  // namespace

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

}  // namespace sekisho::client
