// SPDX-License-Identifier: Apache-2.0
#include "agent/pmi_server.h"

#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <sstream>

#include <asio/experimental/awaitable_operators.hpp>
#include <asio/read_until.hpp>
#include <asio/write.hpp>

#include "agent/errors.h"
#include "agent/local_door.h"
#include "common/log.h"

namespace sekisho::agent {

using asio::experimental::awaitable_operators::operator||;
using asio::local::stream_protocol;

namespace {

constexpr std::chrono::seconds kHelloWithin{10};
constexpr int kStrangersMost = 1024;
constexpr std::chrono::seconds kLeavesWithin{30};  // of a PMIx server that says nothing of a rank that has ended

std::string ValueIn(const task::Spec& spec, const std::string& name) {
  for (const std::string& variable : spec.environment) {
    if (variable.starts_with(name + "=")) {
      return variable.substr(name.size() + 1);
    }
  }
  return "";
}

void Warn(const std::string& job_id) {
  spdlog::error("what ranks say cannot be kept, a restart of this agent would end their world: {} job={}",
                std::strerror(errno), job_id);
}

int NumberIn(const task::Spec& spec, const std::string& name) {
  return std::atoi(ValueIn(spec, name).c_str());
}

}  // namespace

// A rank's line out; what it has not read yet waits here, an answer a question.  Answers are numbered for the
// supervisor between us and the rank (agent/task/pmi_lines.h), which says how many lines it has had answered already.
struct PmiServer::Connection {
  Connection(Loop& loop, stream_protocol::socket accepted)
      : loop(loop), socket(std::move(accepted)) {}

  Loop& loop;
  stream_protocol::socket socket;
  std::string input;
  std::deque<std::string> output;
  uint64_t lines = 0;        // of the rank, so far
  bool is_counting = false;  // a supervisor of before does not

  static void Answer(const std::shared_ptr<Connection>& self, const std::string& text) {
    Push(self, self->is_counting ? std::to_string(self->lines) + " " + text : text);
  }
  static void Push(const std::shared_ptr<Connection>& self, std::string text) {
    self->output.push_back(std::move(text));
    if (self->output.size() == 1) {
      Write(self);
    }
  }
  static void Write(const std::shared_ptr<Connection>& self) {
    asio::async_write(self->socket, asio::buffer(self->output.front()),
                      [self](const std::error_code& error, size_t) {
                        self->output.pop_front();
                        if (!error && !self->output.empty()) {
                          Write(self);
                        }
                      });
  }
  // Nothing at its end.
  static awaitable<std::optional<std::string>> ReadLine(std::shared_ptr<Connection> self) {
    const auto [error, size] = co_await asio::async_read_until(
        self->socket, asio::dynamic_buffer(self->input, kPmiLineMax), '\n', kAsTuple);
    if (error) {
      co_return std::nullopt;
    }
    std::string line = self->input.substr(0, size - 1);
    self->input.erase(0, size);
    ++self->lines;
    co_return line;
  }
};

PmiServer::PmiServer(Loop& loop, Outbox& outbox, FindTask find_task, KillTask kill_task, TakeEnd take_end)
    : loop_(loop),
      outbox_(outbox),
      find_task_(std::move(find_task)),
      kill_task_(std::move(kill_task)),
      take_end_(std::move(take_end)),
      acceptor_(loop) {}

PmiServer::~PmiServer() {
  for (const auto& [job_id, job] : jobs_) {
    for (const auto& [rank, weak] : job.by_rank) {
      if (const auto connection = weak.lock()) {
        std::error_code ignored;
        connection->socket.close(ignored);
      }
    }
  }
}

absl::Status PmiServer::KeepIn(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (chmod(directory.c_str(), 0700) != 0) {
    return errors::BadDirectory(directory, std::strerror(errno));
  }
  directory_ = directory;
  return absl::OkStatus();
}

void PmiServer::Recover(const std::function<const task::Spec*(const std::string& job_id)>& find_running) {
  std::error_code error;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    found.push_back(entry.path().filename());
  }
  for (const std::string& job_id : found) {
    const task::Spec* spec = find_running(job_id);
    if (spec != nullptr && !spec->pmi_socket.empty()) {
      JobOf(*spec);
    }
    if (jobs_.count(job_id) == 0) {  // nor has any of its tasks ended: it is not held
      unlink((directory_ + "/" + job_id).c_str());
    }
  }
}

// The token decides who comes in, not the account.
absl::Status PmiServer::Listen(const std::string& path) {
  RETURN_IF_ERROR(ListenAt(acceptor_, path));
  const auto serve = [this](LocalSocket socket) {
    if (strangers_ < kStrangersMost) {
      co_spawn(loop_, Serve(std::make_shared<Connection>(loop_, std::move(socket))),
               Logged("the connection of a rank"));
    }
  };
  co_spawn(loop_, AcceptAll(loop_, acceptor_, serve), Vital("the door of ranks"));
  return absl::OkStatus();
}

awaitable<const task::Spec*> PmiServer::Greet(std::shared_ptr<Connection> connection) {
  ++strangers_;
  const auto came = co_await (Connection::ReadLine(connection) || Sleep(loop_, kHelloWithin));
  --strangers_;
  const std::optional<std::string>* hello = std::get_if<0>(&came);
  std::istringstream words(hello != nullptr ? hello->value_or("") : "");
  std::string mark;
  std::string job_id;
  std::string token;
  int task = -1;
  uint64_t first = 0;
  words >> mark >> job_id >> task >> token;
  if (words >> first && first > 0) {
    connection->is_counting = true;
    connection->lines = first - 1;
  } else {
    connection->lines = 0;
  }
  const task::Spec* spec = mark == "sekisho" ? find_task_(job_id, token) : nullptr;
  co_return spec != nullptr && spec->task == task ? spec : nullptr;
}

PmiServer::Job& PmiServer::Open(const std::string& job_id) {
  const auto [entry, is_new] = jobs_.try_emplace(job_id);
  Job& job = entry->second;
  if (!is_new || directory_.empty() || !task::IsJobId(job_id)) {
    return job;
  }
  if (!job.journal.Open(directory_ + "/" + job_id, job.before)) {
    Warn(job_id);
  }
  for (const PmiEntry& known : job.before) {
    if (known.kind == PmiEntry::Kind::kRelease) {
      job.release.ParseFromString(known.data);
    }
  }
  return job;
}

// What its ranks are told of each other is in their specs, so that an agent that was restarted knows it too; but for the
// size of a world whose release says another.
PmiServer::Job* PmiServer::JobOf(const task::Spec& spec) {
  Job& job = Open(spec.job_id);
  if (job.ranks) {
    return &job;
  }
  if (spec.await_release && job.release.job_id().empty()) {
    return nullptr;
  }
  const int ranks = job.release.ranks() > 0 ? job.release.ranks() : NumberIn(spec, "PMI_SIZE");
  job.ranks = std::make_unique<PmiRanks>(ranks, NumberIn(spec, "SEKISHO_LOCAL_RANKS"), ValueIn(spec, "SEKISHO_WORLD"));
  job.ranks->SetProcessMapping(job.release.process_mapping());
  for (const PmiEntry& known : std::exchange(job.before, {})) {  // what follows from it was done, or is asked for again
    proto::Fence fence;
    if (known.kind == PmiEntry::Kind::kTask) {
      job.tasks[known.rank] = static_cast<int>(known.number);
    } else if (known.kind == PmiEntry::Kind::kLine) {
      job.ranks->OnLine(known.rank, known.number, known.data);
    } else if (known.kind == PmiEntry::Kind::kFence && fence.ParseFromString(known.data)) {
      job.ranks->OnFenceDone(fence);
    }
  }
  return &job;
}

// Before anybody is told what follows from it.
void PmiServer::Keep(const std::string& job_id, Job& job, const PmiEntry& entry) {
  if (job.journal.is_open() && !job.journal.Append(entry)) {
    Warn(job_id);
  }
}

int PmiServer::RankOf(const Job& job, const task::Spec& spec) {
  return job.release.ranks() > 0 ? job.release.first_rank() + spec.task : NumberIn(spec, "PMI_RANK");
}

awaitable<void> PmiServer::Serve(std::shared_ptr<Connection> connection) {
  const task::Spec* spec = co_await Greet(connection);
  if (spec == nullptr) {
    co_return;
  }
  const std::string job_id = spec->job_id;
  const int task = spec->task;
  Job* const own = JobOf(*spec);
  if (own == nullptr) {
    co_return;  // its release is yet to be said again to this agent: it comes again
  }
  const int rank = RankOf(*own, *spec);
  if (own->tasks.count(rank) == 0) {
    if (connection->lines > 0) {  // better an error than a barrier that nobody else is in
      spdlog::error("what a rank said was not kept, it gets no more answers job={} rank={}", job_id, rank);
      co_return co_await LetGo(connection);
    }
    own->tasks[rank] = task;
    Keep(job_id, *own, {PmiEntry::Kind::kTask, rank, static_cast<uint64_t>(task), ""});
  }
  own->by_rank[rank] = connection;
  for (;;) {
    const std::optional<std::string> line = co_await Connection::ReadLine(connection);
    if (!connection->socket.is_open()) {
      co_return;  // we are no more
    }
    const auto job = jobs_.find(job_id);
    if (job == jobs_.end() || !job->second.ranks) {
      co_return;
    }
    if (!line) {
      job->second.ranks->OnGone(rank);
      co_return TakeEnds(job_id);
    }
    PmiRanks::Effects effects = job->second.ranks->OnLine(rank, connection->lines, *line);
    if (!effects.complaint.empty()) {
      spdlog::warn("a rank gets no more answers job={} rank={}: {}", job_id, rank,
                   Printable(effects.complaint));
      co_return co_await LetGo(connection);
    }
    if (effects.is_news) {
      Keep(job_id, job->second, {PmiEntry::Kind::kLine, rank, connection->lines, *line});
    }
    if (const auto aborted = job->second.tasks.find(effects.aborted.value_or(-1));
        aborted != job->second.tasks.end()) {
      kill_task_(job_id, aborted->second);
    }
    const bool has_left = effects.has_left;
    Apply(job_id, job->second, std::move(effects));
    if (has_left) {
      TakeEnds(job_id);
    }
  }
}

// Of ranks that have ended already.
void PmiServer::TakeEnds(const std::string& job_id) {
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end()) {
    return;
  }
  for (const auto& [rank, since] : std::map(job->second.leaving)) {
    take_end_(job_id, job->second.tasks[rank]);
  }
}

// It reads the end of our answers.  What it says still must not kill it: its exit code is to come.
awaitable<void> PmiServer::LetGo(std::shared_ptr<Connection> connection) {
  std::error_code ignored;
  if (connection->is_counting) {
    Connection::Push(connection, "end\n");
  } else {
    connection->socket.shutdown(asio::socket_base::shutdown_send, ignored);
  }
  for (bool is_open = true; is_open;) {
    const std::optional<std::string> line = co_await Connection::ReadLine(connection);
    is_open = line.has_value();
  }
}

void PmiServer::Apply(const std::string& job_id, Job& job, PmiRanks::Effects effects) {
  for (auto& [rank, text] : effects.lines) {
    if (const auto connection = job.by_rank[rank].lock()) {
      Connection::Answer(connection, text);
    }
  }
  SayFence(job_id, effects.fence);
}

void PmiServer::SayFence(const std::string& job_id, const std::optional<proto::Fence>& fence) {
  if (!fence) {
    return;
  }
  proto::AgentMessage message;
  message.mutable_fence()->set_job_id(job_id);
  *message.mutable_fence()->mutable_fence() = *fence;
  outbox_.Push(std::move(message));
}

bool PmiServer::IsKnown(const std::string& job_id) const {
  return jobs_.count(job_id) > 0 ||
         (!directory_.empty() && access((directory_ + "/" + job_id).c_str(), F_OK) == 0);
}

bool PmiServer::Judge(const task::Spec& spec, task::Ended& ended) {
  Job* const found = spec.pmi_socket.empty() || !IsKnown(spec.job_id) ? nullptr : JobOf(spec);
  if (found == nullptr) {
    return true;
  }
  Job& job = *found;
  const int rank = RankOf(job, spec);
  if (job.ranks->Speaks(rank)) {  // it may have ended when no agent was there
    job.ranks->OnGone(rank);
    job.leaving.erase(rank);
    TakeEnds(spec.job_id);
  }
  if (ended.gram_code != 0) {
    return true;
  }
  if (const auto code = job.ranks->AbortCode(rank)) {
    ended.code = *code & 0xff;
    ended.signal = 0;
  }
  const bool is_well = ended.code == 0 && ended.signal == 0;
  if (is_well && job.ranks->IsLeaving(rank)) {
    // A program leaves MPI_Finalize after 2 s though its server has not heard it: libpmix does not wait any longer.
    const auto now = std::chrono::steady_clock::now();
    job.tasks[rank] = spec.task;
    if (now - job.leaving.try_emplace(rank, now).first->second < kLeavesWithin) {
      return false;
    }
  }
  job.leaving.erase(rank);
  if (is_well && job.ranks->IsInside(rank)) {
    ended.gram_code = task::kExecutionFailed;
    ended.reason = job.ranks->AbortCode(rank) ? "it called MPI_Abort"
                                              : "it ended inside MPI, without MPI_Finalize";
  }
  return true;
}

void PmiServer::OnWelcome() {
  for (auto& [job_id, job] : jobs_) {
    if (job.ranks) {
      SayFence(job_id, job.ranks->last());
      SayFence(job_id, job.ranks->pending());
    }
  }
}

void PmiServer::Handle(const proto::ServerMessage& message) {
  if (message.has_release()) {
    Job& job = Open(message.release().job_id());
    if (job.release.job_id().empty()) {  // else it is said again
      job.release = message.release();
      Keep(message.release().job_id(), job, {PmiEntry::Kind::kRelease, 0, 0, job.release.SerializeAsString()});
    }
  } else if (message.has_fence()) {
    if (const auto job = jobs_.find(message.fence().job_id());
        job != jobs_.end() && job->second.ranks) {
      PmiRanks::Effects effects = job->second.ranks->OnFenceDone(message.fence().fence());
      if (!effects.complaint.empty()) {
        spdlog::error("{} job={}", effects.complaint, job->first);
      }
      // Who has yet to say again that he came is let go then, and not twice.
      std::erase_if(effects.lines, [&job = job->second](const auto& line) {
        const auto connection = job.by_rank[line.first].lock();
        return connection && connection->lines < job.ranks->Entered(line.first);
      });
      if (effects.is_news) {
        Keep(job->first, job->second, {PmiEntry::Kind::kFence, 0, 0, message.fence().fence().SerializeAsString()});
      }
      Apply(job->first, job->second, std::move(effects));
    }
  } else if (message.has_forget() && message.forget().task() == 0) {
    if (const auto job = jobs_.find(message.forget().job_id()); job != jobs_.end()) {
      job->second.journal.Remove();
      jobs_.erase(job);
    }
  }
}

}  // namespace sekisho::agent
