// SPDX-License-Identifier: Apache-2.0
// QueueService's half about bytes: output from the spool, input to task 0.
#include <algorithm>
#include <map>

#include "common/job_state.h"
#include "common/log.h"
#include "qserver/errors.h"
#include "qserver/queue_service.h"

namespace sekisho::qserver {
namespace {

constexpr size_t kChunkBytes = 64 * 1024;
constexpr uint64_t kInputWindow = 256 * 1024;  // sent to the agent, not yet taken by the task

int TaskCountOf(const Job& job) {
  int count = int(job.tasks.size());
  for (const proto::TaskStatus& task : job.status.task()) {
    count = std::max(count, task.task() + 1);
  }
  return count;
}

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
  CO_RETURN_IF_ERROR(judges_.caller(context));
  const std::string job_id = request.job_id();
  if (conductor_.queue().Find(job_id) == nullptr) {
    co_return errors::NoSuchJob(Printable(job_id));
  }

  // Send what there is, from the positions on; then wait for more, until the job has ended.
  std::map<std::pair<int, int>, uint64_t> at;  // task, stream
  for (const proto::OutputPosition& position : request.position()) {
    at[{position.task(), int(position.stream())}] = position.offset();
  }
  const auto changed = conductor_.JobSignal(job_id);
  for (;;) {
    const Job* job = conductor_.queue().Find(job_id);
    if (job == nullptr) {
      co_return absl::OkStatus();  // forgotten meanwhile
    }
    // Its end is published before the queue is asked again: what is in the spool now is all.
    const bool has_ended = IsFinal(job->status.state()) && conductor_.IsPublished(job_id);
    const int tasks = TaskCountOf(*job);
    bool has_sent = false;
    for (int task = 0; task < tasks; ++task) {
      for (int stream = 0; stream < 2 && (request.task() == 0 || request.task() == task + 1);
           ++stream) {
        uint64_t& offset = at[{task, stream}];
        CO_ASSIGN_OR_RETURN(std::string data,
                            conductor_.spool().Read(job_id, task, stream, offset, kChunkBytes));
        if (data.empty()) {
          continue;
        }
        proto::OutputChunk chunk;
        chunk.set_task(task);
        chunk.set_stream(proto::OutputChunk::Stream(stream));
        chunk.set_offset(offset);
        offset += data.size();
        chunk.set_data(std::move(data));
        has_sent = true;
        const bool is_there = co_await writer.Write(std::move(chunk));
        if (!is_there) {
          co_return absl::CancelledError("the jobmanager has gone");
        }
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

// The reply says how many bytes the task has taken: a caller that has more begins there in a new
// call.
awaitable<absl::Status> QueueService::HandleInput(grpc::CallbackServerContext& context,
                                                  rpc::Reader<proto::InputChunk>& reader,
                                                  proto::InputReply& reply) {
  // Validate.
  CO_RETURN_IF_ERROR(judges_.caller(context));
  proto::InputChunk chunk;
  const bool has_first = co_await reader.Read(chunk);
  if (!has_first) {
    co_return errors::BadRequest("expected input");
  }
  const std::string job_id = chunk.job_id();
  const Job* job = conductor_.queue().Find(job_id);
  if (job == nullptr) {
    co_return errors::NoSuchJob(Printable(job_id));
  }
  if (!job->has_input) {
    co_return errors::NoInput(job_id);
  }

  const auto changed = conductor_.JobSignal(job_id);
  const auto is_open = [&] {
    const Job* now = conductor_.queue().Find(job_id);
    return now != nullptr && !IsFinal(now->status.state());
  };
  const auto node = [&]() -> const std::string& {
    return conductor_.queue().Find(job_id)->tasks[0].node;
  };
  const auto has_started = [&] {
    const Job* now = conductor_.queue().Find(job_id);
    return !now->tasks.empty() && now->tasks[0].is_started && conductor_.nodes().count(node()) > 0;
  };
  while (is_open() && !has_started()) {
    co_await changed->Wait();
  }

  // Pass on, never more than the window ahead of the task.
  bool has_more = true;
  while (has_more && is_open() && has_started()) {
    const uint64_t generation = conductor_.nodes().at(node()).generation;
    InputProgress& progress = conductor_.input(job_id);
    if (chunk.offset() > progress.sent) {
      co_return errors::InputGap(progress.sent, chunk.offset());
    }
    const uint64_t known = std::min<uint64_t>(progress.sent - chunk.offset(), chunk.data().size());
    if (known < chunk.data().size() || chunk.end()) {
      proto::ServerMessage message;
      proto::ServerMessage::Input& input = *message.mutable_input();
      input.mutable_task()->set_job_id(job_id);
      input.mutable_task()->set_task(0);
      input.set_offset(progress.sent);
      input.set_data(chunk.data().substr(known));
      input.set_end(chunk.end());
      progress.sent += input.data().size();
      conductor_.Send(node(), std::move(message));
    }
    const uint64_t ahead = chunk.end() ? 0 : kInputWindow;
    const auto is_same_stream = [&] {
      return has_started() && conductor_.nodes().at(node()).generation == generation;
    };
    while (is_open() && is_same_stream() &&
           conductor_.input(job_id).sent > conductor_.input(job_id).taken + ahead) {
      co_await changed->Wait();
    }
    if (is_open() && !is_same_stream()) {
      conductor_.input(job_id).sent = conductor_.input(job_id).taken;
      break;
    }
    has_more = !chunk.end();
    if (has_more) {
      has_more = co_await reader.Read(chunk);
    }
  }
  reply.set_accepted(is_open() ? conductor_.input(job_id).taken : 0);
  co_return absl::OkStatus();
}

}  // namespace sekisho::qserver
