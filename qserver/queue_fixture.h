// SPDX-License-Identifier: Apache-2.0
// The queue alone, with what the test says of agents and of the allocator.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qserver/demand.h"
#include "qserver/queue.h"

namespace sekisho::qserver {

inline constexpr int64_t kNow = 1'000'000;

// What the effects are, a word each: events by kind, messages as KIND@NODE.
inline std::vector<std::string> Words(const Effects& effects) {
  std::vector<std::string> words;
  for (const proto::JobEvent& event : effects.events) {
    words.push_back(event.GetDescriptor()->FindFieldByNumber(int(event.kind_case()))->name());
  }
  for (const Effects::Outgoing& out : effects.messages) {
    words.push_back(
        out.message.GetDescriptor()->FindFieldByNumber(int(out.message.kind_case()))->name() + "@" +
        out.node);
  }
  return words;
}

class QueueTest : public ::testing::Test {
 protected:
  QueueTest() : queue_(MakeQueue()) {
    queue_->SetAttached("n1", true);
    queue_->SetAttached("n2", true);
  }

  static std::unique_ptr<Queue> MakeQueue() {
    TaskSettings settings;
    settings.site = "siteA";
    return std::make_unique<Queue>(settings, 0);
  }

  static Admitted Ask(const std::string& id, const std::string& rsl) {
    Admitted admitted;
    admitted.job_id = id;
    admitted.gatekeeper_subject = "/CN=host/gate.example.org";
    admitted.submitted.set_rsl(rsl);
    admitted.submitted.set_account("alice");
    admitted.submitted.set_subject("/CN=Alice");
    proto::RequestBody body;
    body.set_gatekeeper_subject(admitted.gatekeeper_subject);
    body.mutable_submit();
    admitted.submitted.mutable_request()->set_body(body.SerializeAsString());
    admitted.demand = MakeDemand(id, *rsl::ParseAndDescribe(rsl, {}), 0);
    return admitted;
  }
  static proto::Decision On(const std::string& id,
                            const std::vector<std::pair<std::string, int>>& places) {
    proto::Decision decision;
    decision.set_job_id(id);
    decision.mutable_start()->set_resource("R");
    for (const auto& [node, processes] : places) {
      proto::Placement& place = *decision.mutable_start()->add_placement();
      place.set_node(node);
      place.set_processes(processes);
    }
    return decision;
  }
  static proto::Decision Waits(const std::string& id) {
    proto::Decision decision;
    decision.set_job_id(id);
    decision.mutable_wait()->set_resource("R");
    decision.mutable_wait()->set_reason("waits for 1 more processor on R");
    return decision;
  }
  static proto::JobEvent::Array::Range Range(int first, int last) {
    proto::JobEvent::Array::Range range;
    range.set_first(first);
    range.set_last(last);
    range.set_step(1);
    return range;
  }
  static proto::TaskKey Key(const std::string& id, int task) {
    proto::TaskKey key;
    key.set_job_id(id);
    key.set_task(task);
    return key;
  }
  static proto::AgentMessage::Exited Exited(const std::string& id, int task, int code,
                                            uint64_t out = 0) {
    proto::AgentMessage::Exited exited;
    *exited.mutable_task() = Key(id, task);
    exited.mutable_exit()->set_code(code);
    exited.set_stdout_size(out);
    return exited;
  }
  static proto::AgentMessage::Hello Hello(const std::vector<proto::TaskKey>& held) {
    proto::AgentMessage::Hello hello;
    for (const proto::TaskKey& key : held) {
      *hello.add_held() = key;
    }
    return hello;
  }

  // Whom the allocator is asked about.
  std::vector<std::string> Asked() {
    std::vector<std::string> ids;
    const proto::DecideRequest request = queue_->Ask(kNow, {}, {});
    for (const proto::Demand& demand : request.pending()) {
      ids.push_back(demand.job_id());
    }
    return ids;
  }
  Effects Keep(Effects effects) {
    events_.insert(events_.end(), effects.events.begin(), effects.events.end());
    return effects;
  }
  Effects Start(const std::string& id, const std::string& rsl,
                const std::vector<std::pair<std::string, int>>& places) {
    const proto::Decision decision = On(id, places);
    return Keep(queue_->Accept(Ask(id, rsl), &decision, kNow));
  }
  // As after a kill -9: only the events are left.
  void Restart() {
    queue_ = MakeQueue();
    std::set<std::string> ended;
    for (const proto::JobEvent& event : events_) {
      if (event.has_ended()) {
        ended.insert(event.job_id());
      }
    }
    for (const proto::JobEvent& event : events_) {
      ASSERT_TRUE(queue_->Replay(event, ended.count(event.job_id()) > 0).ok());
    }
    queue_->FinishReplay([](const std::string&, int, int) { return 0; }, kNow);
    queue_->SetAttached("n1", true);
    queue_->SetAttached("n2", true);
  }
  const proto::JobStatus Status(const std::string& id) { return queue_->StatusOf(id); }

  std::unique_ptr<Queue> queue_;
  std::vector<proto::JobEvent> events_;
};

}  // namespace sekisho::qserver
