// SPDX-License-Identifier: Apache-2.0
#include "client/job/wait_notice.h"

#include <fmt/format.h>

#include "client/site/harmless.h"

namespace sekisho::client {
namespace {

constexpr std::chrono::milliseconds kMoment{1'000};

awaitable<void> SayAfter(Loop& loop, std::chrono::milliseconds time, std::function<void()> say) {
  co_await Sleep(loop, time);
  say();
}

}  // namespace

std::string WaitText(const std::string& site, const std::string& job_id, bool is_inside,
                     const std::string& reason, bool is_cancelled_by_interrupt) {
  const std::string text =
      is_inside
          ? fmt::format("{}/{}: {}", site, job_id, reason)
          : fmt::format("{} does not answer through its firewall; the job is kept and waits", site);
  return fmt::format("sekisho: {}{}\n", Harmless(text), is_cancelled_by_interrupt ? " (Ctrl-C cancels)" : "");
}

WaitNotice::WaitNotice(Loop& loop, bool is_cancelled_by_interrupt)
    : loop_(loop), is_cancelled_by_interrupt_(is_cancelled_by_interrupt) {}

void WaitNotice::OnSubmitted(const proto::SubmitReply& reply) {
  state_->site = reply.site();
  state_->job_id = reply.job_id();
}

void WaitNotice::OnEvent(const proto::JobEvent& event) {
  switch (event.kind_case()) {
    case proto::JobEvent::kQueued:
      state_->is_inside = true;
      state_->reason.clear();
      break;
    case proto::JobEvent::kWaiting:
      if (state_->reason.empty()) {
        SaySoon();
      }
      state_->reason = event.waiting().reason();
      break;
    case proto::JobEvent::kAllocated:
      state_->reason.clear();
      break;
    case proto::JobEvent::kTaskStarted:
    case proto::JobEvent::kCancelling:
    case proto::JobEvent::kEnded:
      state_->is_over = true;
      break;
    default:
      break;
  }
}

void WaitNotice::SaySoon() {
  // Of a silent queue server we hear only when a moment has passed.
  const auto time = state_->is_inside ? kMoment : std::chrono::milliseconds(0);
  auto say = [state = state_, is_cancelled = is_cancelled_by_interrupt_] {
    if (!state->is_over && !state->reason.empty()) {
      state->is_over = true;
      fmt::print(
          stderr, "{}",
          WaitText(state->site, state->job_id, state->is_inside, state->reason, is_cancelled));
    }
  };
  co_spawn(loop_, SayAfter(loop_, time, std::move(say)), Logged("why the job waits"));
}

}  // namespace sekisho::client
