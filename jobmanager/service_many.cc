// SPDX-License-Identifier: Apache-2.0
// The service's part about many jobs at a time: docs/protocol/18-arrays.md.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "common/job_array.h"
#include "common/job_state.h"
#include "jobmanager/errors.h"
#include "jobmanager/service.h"

namespace sekisho::jobmanager {
namespace {

constexpr int kWatchedMost = 10'000;
constexpr int kStatusesOfAMessage = 1'000;
// Between two looks at an array whose elements come and go.
constexpr std::chrono::milliseconds kLookEvery{200};

}  // namespace

grpc::ServerUnaryReactor* Service::SubmitMany(Context* context, const proto::SignedRequest* request,
                                              proto::ManyReply* reply) {
  return rpc::Unary(loop_, context,
                    [this, caller = CallerOf(*context), request, reply]() -> awaitable<absl::Status> {
                      CO_RETURN_IF_ERROR(caller.status());
                      CO_ASSIGN_OR_RETURN(*reply, co_await jobs_.SubmitMany(*caller, *request));
                      co_return absl::OkStatus();
                    });
}

grpc::ServerUnaryReactor* Service::CommandMany(Context* context, const proto::SignedRequest* request,
                                               proto::ManyReply* reply) {
  return rpc::Unary(loop_, context,
                    [this, caller = CallerOf(*context), request, reply]() -> awaitable<absl::Status> {
                      CO_RETURN_IF_ERROR(caller.status());
                      CO_ASSIGN_OR_RETURN(*reply, co_await jobs_.CommandMany(*caller, *request));
                      co_return absl::OkStatus();
                    });
}

grpc::ServerWriteReactor<proto::StatusReply>* Service::Watch(Context* context, const proto::StatusRequest* request) {
  return rpc::Stream<proto::StatusReply>(loop_, [this, caller = CallerOf(*context), request](auto& writer) {
    return DoWatch(caller, *request, writer);
  });
}

awaitable<absl::Status> Service::DoWatch(absl::StatusOr<Caller> caller, proto::StatusRequest request,
                                         rpc::Writer<proto::StatusReply>& writer) {
  // Validate.
  CO_RETURN_IF_ERROR(caller.status());
  if (request.job_id_size() > kWatchedMost) {
    co_return errors::Malformed(fmt::format("more than {} job ids", kWatchedMost));
  }

  // From here on every change is noted.
  const auto watcher = std::make_shared<Watcher>(loop_);
  const std::set<std::string> all(request.job_id().begin(), request.job_id().end());
  std::set<std::string> arrays;
  std::map<std::string, std::set<std::string>> elements_of;  // an element that never is ends with its array, without a word
  for (const std::string& id : all) {
    const proto::JobStatus status = jobs_.book().Status(id, caller->subject);
    if (IsFinal(status.state()) || status.state() == proto::UNKNOWN) {
      continue;
    }
    jobs_.Watch(id, watcher);
    if (status.has_array()) {
      arrays.insert(id);
    }
    if (const auto element = SplitElementId(id)) {
      const auto [found, is_first] = elements_of.try_emplace(element->first);
      found->second.insert(id);
      if (is_first && all.count(element->first) == 0) {
        jobs_.Watch(element->first, watcher);
      }
    }
  }

  std::set<std::string> alive = all;
  std::set<std::string> changed = all;
  for (;;) {
    proto::StatusReply reply;
    while (!changed.empty()) {
      const std::string id = *changed.begin();
      changed.erase(changed.begin());
      *reply.add_job() = jobs_.book().Status(id, caller->subject);
      const proto::JobState state = reply.job(reply.job_size() - 1).state();
      if (IsFinal(state) || state == proto::UNKNOWN) {
        alive.erase(id);
      }
      if (reply.job_size() == kStatusesOfAMessage || changed.empty()) {
        const bool is_there = co_await writer.Write(std::move(reply));
        if (!is_there) {
          co_return absl::CancelledError("the client is gone");
        }
        reply.Clear();
      }
    }
    if (alive.empty()) {
      co_return absl::OkStatus();
    }

    // What has changed meanwhile?
    if (watcher->items.empty() && !watcher->is_behind && !watcher->has_moved) {
      co_await watcher->changed.Wait();
    }
    if (watcher->has_moved && watcher->items.empty()) {
      co_await Sleep(loop_, kLookEvery);
    }
    for (const Watcher::Item& item : watcher->items) {
      const std::string& id = item.event.job_id();
      if (alive.count(id) > 0) {
        changed.insert(id);
      }
      if (const auto found = elements_of.find(id); found != elements_of.end()) {
        std::set_intersection(found->second.begin(), found->second.end(), alive.begin(), alive.end(),
                              std::inserter(changed, changed.end()));
      }
    }
    if (watcher->is_behind) {
      changed = alive;
    }
    if (watcher->has_moved) {
      changed.insert(arrays.begin(), arrays.end());
    }
    watcher->items.clear();
    watcher->is_behind = watcher->has_moved = false;
  }
}

}  // namespace sekisho::jobmanager
