// SPDX-License-Identifier: Apache-2.0
// A queue server that does what the test says.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/job_state.h"
#include "common/rpc_server.h"
#include "proto/queue.grpc.pb.h"

namespace sekisho::jobmanager {

// Who submits everything.
inline constexpr char kFakeSubject[] = "/O=Grid/CN=Alice";

// All on its loop, which outlives every jobmanager of the test.
class FakeQueue final : public proto::Queue::CallbackService {
 public:
  explicit FakeQueue(Loop& loop) : loop_(loop), changed_(loop) {}

  std::function<absl::Status(const proto::RequestBody&)> on_submit = [](const auto&) {
    return absl::OkStatus();
  };
  bool is_mute = false;  // takes submits and commands, but does not answer
  std::vector<proto::RequestBody> submits;
  std::vector<proto::RequestBody> commands;
  std::map<std::string, std::string> output;  // of task 0, by job
  std::vector<uint64_t> portions;  // of output, as they were asked for
  std::string input;

  void Speak() {
    is_mute = false;
    changed_.Notify();
  }
  // The stream passes over this event, once.
  void Withhold(size_t sequence) { withheld_.insert(sequence); }
  size_t last_sequence() const { return log_.size(); }
  // The stream says nothing more until it is let go on.
  bool is_stalled = false;
  void GoOn() {
    is_stalled = false;
    changed_.Notify();
  }
  int streams = 0;  // of events, that have begun
  bool knows_groups = true;  // else as queue servers of before
  size_t largest_group = 0;
  int singles = 0;  // events that were sent one by one
  int asked = 0;    // how jobs stand
  // As after its database was lost.
  void ForgetAll() { known_.clear(); }
  void Emit(proto::JobEvent event) {
    event.set_sequence(log_.size() + 1);
    log_.push_back(event);
    changed_.Notify();
  }
  void Emit(const std::string& id, const std::function<void(proto::JobEvent&)>& fill) {
    proto::JobEvent event;
    event.set_job_id(id);
    event.set_time_ms(std::chrono::duration_cast<std::chrono::milliseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count());
    fill(event);
    Emit(event);
  }

 private:
  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context,
                                   const proto::QueueRequest* request,
                                   proto::SubmitReply* reply) override {
    return rpc::Unary(loop_, context, [this, request, reply]() -> awaitable<absl::Status> {
      proto::RequestBody body;
      body.ParseFromString(request->request().body());
      submits.push_back(body);
      while (is_mute) {
        co_await changed_.Wait();
      }
      CO_RETURN_IF_ERROR(on_submit(body));
      const std::string id = JobIdFor("siteA", kFakeSubject, body.request_id());
      if (!known_.insert(id).second) {
        reply->set_is_repeat(true);
      } else {
        Emit(id, [](proto::JobEvent& event) { event.mutable_queued(); });
      }
      reply->set_job_id(id);
      reply->set_site("siteA");
      co_return absl::OkStatus();
    });
  }
  grpc::ServerUnaryReactor* Command(grpc::CallbackServerContext* context,
                                    const proto::QueueRequest* request,
                                    proto::CommandReply* reply) override {
    return rpc::Unary(loop_, context, [this, request, reply]() -> awaitable<absl::Status> {
      proto::RequestBody body;
      body.ParseFromString(request->request().body());
      while (is_mute) {
        co_await changed_.Wait();
      }
      commands.push_back(body);
      reply->set_state(proto::CANCELLED);
      co_return absl::OkStatus();
    });
  }
  grpc::ServerWriteReactor<proto::JobEvent>* Events(grpc::CallbackServerContext*,
                                                    const proto::EventsRequest* request) override {
    return rpc::Stream<proto::JobEvent>(loop_,
                                        [this, after = request->after_sequence()](auto& writer) {
                                          return SendEvents(writer, after);
                                        });
  }
  grpc::ServerWriteReactor<proto::EventGroup>* EventGroups(grpc::CallbackServerContext*,
                                                           const proto::EventsRequest* request) override {
    return rpc::Stream<proto::EventGroup>(loop_, [this, after = request->after_sequence()](auto& writer) {
      return SendEvents(writer, after);
    });
  }
  static awaitable<bool> Say(rpc::Writer<proto::JobEvent>& writer, proto::EventGroup group) {
    return writer.Write(group.event(0));
  }
  static awaitable<bool> Say(rpc::Writer<proto::EventGroup>& writer, proto::EventGroup group) {
    return writer.Write(std::move(group));
  }
  template <typename Message>
  awaitable<absl::Status> SendEvents(rpc::Writer<Message>& writer, size_t next) {
    constexpr bool kAreGroups = std::is_same_v<Message, proto::EventGroup>;
    if (kAreGroups && !knows_groups) {
      co_return absl::UnimplementedError("");
    }
    ++streams;
    proto::EventGroup group;
    group.add_event();
    co_await Say(writer, std::exchange(group, {}));
    for (;;) {
      while (next < log_.size() && !is_stalled && (kAreGroups || group.event().empty())) {
        const proto::JobEvent& event = log_[next++];
        if (withheld_.erase(event.sequence()) == 0) {
          *group.add_event() = event;
        }
      }
      if (group.event().empty()) {
        co_await changed_.Wait();
        continue;
      }
      largest_group = std::max(largest_group, size_t(group.event_size()));
      singles += !kAreGroups;
      const bool is_there = co_await Say(writer, std::exchange(group, {}));
      if (!is_there) {
        co_return absl::OkStatus();
      }
    }
  }
  grpc::ServerWriteReactor<proto::OutputChunk>* Output(
      grpc::CallbackServerContext*, const proto::OutputRequest* request) override {
    return rpc::Stream<proto::OutputChunk>(
        loop_, [this, wanted = *request](auto& writer) { return SendOutput(writer, wanted); });
  }
  awaitable<absl::Status> SendOutput(rpc::Writer<proto::OutputChunk>& writer,
                                     proto::OutputRequest wanted) {
    portions.push_back(wanted.most_bytes());
    const uint64_t begin = wanted.position_size() > 0 ? wanted.position(0).offset() : 0;
    uint64_t offset = begin;
    for (;;) {
      if (wanted.most_bytes() > 0 && offset - begin >= wanted.most_bytes()) {
        co_return absl::OkStatus();
      }
      const std::string& all = output[wanted.job_id()];
      if (offset < all.size()) {
        proto::OutputChunk chunk;
        chunk.set_offset(offset);
        chunk.set_data(all.substr(offset, offset < 1024 ? 4 : 1024));
        offset += chunk.data().size();
        if (!co_await writer.Write(chunk)) {
          co_return absl::OkStatus();
        }
        continue;
      }
      for (const proto::JobEvent& event : log_) {
        if (event.job_id() == wanted.job_id() && event.has_ended()) {
          co_return absl::OkStatus();
        }
      }
      if (!wanted.follow()) {
        co_return absl::OkStatus();
      }
      co_await changed_.Wait();
    }
  }
  grpc::ServerReadReactor<proto::InputChunk>* Input(grpc::CallbackServerContext*,
                                                    proto::InputReply* reply) override {
    return rpc::Receive<proto::InputChunk>(
        loop_, [this, reply](auto& reader) { return Take(reader, *reply); });
  }
  awaitable<absl::Status> Take(rpc::Reader<proto::InputChunk>& reader, proto::InputReply& reply) {
    proto::InputChunk chunk;
    while (co_await reader.Read(chunk)) {
      input += chunk.data();
    }
    reply.set_accepted(input.size());
    co_return absl::OkStatus();
  }
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context, const proto::StatusRequest* request,
                                   proto::StatusReply* reply) override {
    return rpc::Unary(loop_, context, [this, request, reply]() -> awaitable<absl::Status> {
      asked += request->job_id_size() > 0;
      for (const std::string& id : request->job_id()) {
        proto::JobStatus& job = *reply->add_job();
        job.set_job_id(id);
        job.set_state(known_.count(id) > 0 ? proto::PENDING : proto::UNKNOWN);
        for (const proto::JobEvent& event : log_) {
          if (event.job_id() == id && job.state() != proto::UNKNOWN) {
            Fold(event, job).IgnoreError();
          }
        }
      }
      co_return absl::OkStatus();
    });
  }
  grpc::ServerUnaryReactor* Site(grpc::CallbackServerContext* context, const proto::SiteRequest*,
                                 proto::SiteInfo* reply) override {
    reply->set_site("siteA");
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerWriteReactor<proto::Hop>* Diagnose(grpc::CallbackServerContext*,
                                                 const proto::DiagnoseRequest*) override {
    return rpc::Stream<proto::Hop>(loop_, [](auto& writer) { return SendHops(writer); });
  }
  static awaitable<absl::Status> SendHops(rpc::Writer<proto::Hop>& writer) {
    for (const char* name : {"qserver", "allocator"}) {
      proto::Hop hop;
      hop.set_name(name);
      hop.set_is_ok(true);
      co_await writer.Write(hop);
    }
    co_return absl::OkStatus();
  }

  Loop& loop_;
  Signal changed_;
  std::vector<proto::JobEvent> log_;
  std::set<std::string> known_;
  std::set<size_t> withheld_;
};
}  // namespace sekisho::jobmanager
