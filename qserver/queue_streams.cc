// SPDX-License-Identifier: Apache-2.0
// QueueService's half about bytes: output from the spool, input to task 0, or rank 0.
#include <algorithm>

#include <asio/experimental/awaitable_operators.hpp>

#include "common/job_state.h"
#include "common/log.h"
#include "qserver/errors.h"
#include "qserver/output_cursor.h"
#include "qserver/queue_service.h"
#include "qserver/ranks.h"

namespace sekisho::qserver {
namespace {

constexpr size_t kChunkBytes = 64 * 1024;
constexpr uint64_t kInputWindow = 256 * 1024;  // sent to the agent, not yet taken by the task
constexpr size_t kInputChunkMost = 256 * 1024;

using asio::experimental::awaitable_operators::operator||;

}  // namespace

grpc::ServerWriteReactor<proto::OutputChunk>* QueueService::Output(
    grpc::CallbackServerContext* context, const proto::OutputRequest* request) {
  return rpc::Stream<proto::OutputChunk>(loop_, [this, context, request = *request](auto& writer) {
    return HandleOutput(*context, writer, request);
  });
}

awaitable<absl::Status> QueueService::HandleOutput(grpc::CallbackServerContext& context,
                                                   rpc::Writer<proto::OutputChunk>& writer,
                                                   proto::OutputRequest request) {
  // Validate.
  const std::string job_id = request.job_id();
  CO_RETURN_IF_ERROR(FindFor(context, job_id).status());

  // Send what there is, from the positions on; then wait for more, until the job has ended.
  OutputCursor cursor(request);
  const auto changed = conductor_.JobSignal(job_id);
  for (;;) {
    const Job* job = conductor_.queue().Find(job_id);
    if (job == nullptr) {
      co_return absl::OkStatus();  // forgotten meanwhile
    }
    const bool is_all_there = IsFinal(job->status.state());  // in the spool
    const bool has_ended = is_all_there && conductor_.IsPublished(job_id);
    bool has_sent = false;
    for (const auto& [task, stream] : cursor.Due(*job, is_all_there)) {
      const OutputCursor::Key key{task, stream};
      CO_ASSIGN_OR_RETURN(std::string data,
                          conductor_.spool().Read(job_id, task, stream, cursor.offset(key),
                                                  size_t(std::min<uint64_t>(kChunkBytes, cursor.room()))));
      proto::OutputChunk chunk;
      chunk.set_task(task);
      chunk.set_stream(proto::OutputChunk::Stream(stream));
      chunk.set_offset(cursor.offset(key));
      cursor.Read(key, data.size());
      if (data.empty()) {
        continue;
      }
      chunk.set_data(std::move(data));
      has_sent = true;
      const bool is_there = co_await writer.Write(std::move(chunk));
      if (!is_there) {
        co_return absl::CancelledError("the jobmanager has gone");
      }
      if (cursor.room() == 0) {
        co_return absl::OkStatus();
      }
    }
    if (has_sent) {
      continue;
    }
    if (has_ended || !request.follow()) {
      co_return absl::OkStatus();
    }
    co_await changed->Wait();
  }
}

grpc::ServerReadReactor<proto::InputChunk>* QueueService::Input(
    grpc::CallbackServerContext* context, proto::InputReply* reply) {
  return rpc::Receive<proto::InputChunk>(
      loop_, [=, this](auto& reader) { return HandleInput(*context, reader, *reply); });
}

namespace {

// One call that feeds a job's input, as long as no newer one does.
class Feed {
 public:
  Feed(Conductor& conductor, std::string job_id)
      : conductor_(conductor), job_id_(std::move(job_id)), call_(conductor.NextInputCall()),
        changed_(conductor.JobSignal(job_id_)) {
    conductor_.input(job_id_).call = call_;
    changed_->Notify();
  }

  awaitable<void> Changed() { co_await changed_->Wait(); }
  bool is_open() const {
    const Job* job = conductor_.queue().Find(job_id_);
    return job != nullptr && !IsFinal(job->status.state());
  }
  bool is_taken_over() const { return is_open() && conductor_.input(job_id_).call != call_; }
  bool is_fed() const { return is_open() && !is_taken_over(); }
  // Of the stream of the task's node; 0: it does not run, or its node is away.
  uint64_t generation() const {
    const Job* job = conductor_.queue().Find(job_id_);
    const size_t task = job != nullptr ? size_t(InputTask(job->charter())) : 0;
    if (job == nullptr || task >= job->tasks.size() || !job->tasks[task].is_started) {
      return 0;
    }
    const auto node = conductor_.nodes().find(job->tasks[task].node);
    return node == conductor_.nodes().end() ? 0 : node->second.generation;
  }

  // What of `chunk` is new goes to the node.
  absl::Status Send(const proto::InputChunk& chunk, uint64_t generation) {
    InputProgress& progress = conductor_.input(job_id_);
    if (progress.generation != generation) {  // the node has not said yet where to go on
      progress.sent = progress.taken;
      progress.generation = generation;
      progress.has_ended = false;
    }
    if (chunk.offset() > progress.sent) {
      return errors::InputGap(progress.sent, chunk.offset());
    }
    const uint64_t known = std::min<uint64_t>(progress.sent - chunk.offset(), chunk.data().size());
    if (known < chunk.data().size() || chunk.end()) {
      proto::ServerMessage message;
      proto::ServerMessage::Input& input = *message.mutable_input();
      const Job& job = *conductor_.queue().Find(job_id_);
      const int task = InputTask(job.charter());
      input.mutable_task()->set_job_id(job_id_);
      input.mutable_task()->set_task(task);
      input.set_offset(progress.sent);
      input.set_data(chunk.data().substr(known));
      input.set_end(chunk.end());
      progress.sent += input.data().size();
      conductor_.Send(job.tasks[size_t(task)].node, std::move(message));
    }
    return absl::OkStatus();
  }
  // It is not far ahead of the task; after the end: the task has it all.
  bool is_taken(bool is_end) const {
    const InputProgress& progress = conductor_.input(job_id_);
    return is_end ? progress.has_ended && progress.taken >= progress.sent
                  : progress.sent <= progress.taken + kInputWindow;
  }
  uint64_t taken() const { return is_open() ? conductor_.input(job_id_).taken : 0; }

 private:
  Conductor& conductor_;
  const std::string job_id_;
  const uint64_t call_;
  const std::shared_ptr<Signal> changed_;
};

awaitable<void> UntilTakenOver(Feed& feed) {
  while (feed.is_fed()) {
    co_await feed.Changed();
  }
}

}  // namespace

// The reply says how many bytes the task has taken: a caller that has more begins there in a new
// call.
awaitable<absl::Status> QueueService::HandleInput(grpc::CallbackServerContext& context,
                                                  rpc::Reader<proto::InputChunk>& reader,
                                                  proto::InputReply& reply) {
  // Validate.
  CO_RETURN_IF_ERROR(judges_.caller(context).status());
  proto::InputChunk chunk;
  const bool has_first = co_await reader.Read(chunk);
  if (!has_first) {
    co_return errors::BadRequest("expected input");
  }
  const std::string job_id = chunk.job_id();
  CO_ASSIGN_OR_RETURN(const Job* job, FindFor(context, job_id));
  if (!job->has_input) {
    co_return errors::NoInput(job_id);
  }
  if (IsFinal(job->status.state())) {
    co_return absl::OkStatus();
  }

  // Nothing more is read before the task runs: what waits, waits with its sender.
  Feed feed(conductor_, job_id);
  while (feed.is_fed() && feed.generation() == 0) {
    co_await feed.Changed();
  }

  // Pass on, never more than the window ahead of the task.
  bool has_more = true;
  while (has_more && feed.is_fed() && feed.generation() != 0) {
    if (chunk.data().size() > kInputChunkMost) {
      co_return errors::InputTooLarge(kInputChunkMost);
    }
    const uint64_t generation = feed.generation();
    CO_RETURN_IF_ERROR(feed.Send(chunk, generation));
    while (feed.is_fed() && feed.generation() == generation && !feed.is_taken(chunk.end())) {
      co_await feed.Changed();
    }
    if (feed.is_fed() && feed.generation() != generation) {
      break;
    }
    has_more = !chunk.end();
    if (has_more && feed.is_fed()) {
      const auto read = co_await (reader.Read(chunk) || UntilTakenOver(feed));
      const bool* is_read = std::get_if<bool>(&read);
      has_more = is_read != nullptr && *is_read;
    }
  }
  if (feed.is_taken_over()) {
    co_return errors::InputTakenOver(job_id);
  }
  if (has_more && feed.is_fed()) {  // whoever feeds it may have said the end by now, and would take OK for the answer to that
    co_return errors::InputNotHeard(job_id);
  }
  reply.set_accepted(feed.taken());
  co_return absl::OkStatus();
}

}  // namespace sekisho::qserver
